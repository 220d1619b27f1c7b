"""The other charts: publish latency, open findings over runs, coverage. Pure SVG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from markupsafe import Markup, escape

from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from spark.report.report import Latency, Report, format_count
from spark.report.svg import COLUMNS, HEIGHT, LEFT, WIDTH, ends, grid, note, x_of, y_of

PERCENTILES: Final = ("p50", "p95", "p99")
CELL: Final = 14
CELLS_PER_ROW: Final = 60
CELLS: Final = 1200
"""Above this number of partitions no chart of the coverage is drawn."""


def latency_chart(latencies: Sequence[Latency]) -> Markup:
    """Return the percentiles per minute as lines; a step of several minutes shows the worst."""
    steps = _steps([each for each in latencies if each.minute is not None])
    if not steps:
        return note("No message of the sample has both a commit time and a record time.")
    top = max(each.p99 for each in steps)
    lines = [
        f'<path class="{name}" d="M{" L".join(_points(name, steps, top))}"/>'
        for name in PERCENTILES
    ]
    first, last = steps[0].minute, steps[-1].minute
    assert first is not None
    assert last is not None
    label = f"publish latency, 99th percentile at most {in_seconds(top)}"
    return _svg(label, f"{_seconds_grid(top)}{''.join(lines)}{ends(first, last)}")


def runs_chart(report: Report) -> Markup:
    """Return one bar per run for its open findings, the newest run last."""
    runs = [(each.finished_at, each.verdict, each.open_findings) for each in report.past]
    cut_at = report.plan.cut_at
    runs.append((cut_at, report.verdict.value, sum(report.totals.values())))
    top = max(1, *(n for _, _, n in runs))
    bars = "".join(_bar(place, len(runs), run, top) for place, run in enumerate(runs))
    label = f"open findings over {len(runs)} runs, now {format_count(runs[-1][2])}"
    return _svg(label, f"{grid(top)}{bars}{ends(runs[0][0], cut_at)}")


def coverage_chart(report: Report) -> Markup:
    """Return one cell per partition: read to the cut or not; the relay's partitions come last."""
    log = report.plan.log
    unread = {gap.partition for gap in log.gaps}
    cells = sorted({*(each.partition for each in log.records), *unread})
    if not cells or len(cells) > CELLS:
        return Markup("")
    height = CELL * (1 + (len(cells) - 1) // CELLS_PER_ROW)
    drawn = "".join(_cell(place, each, each in unread) for place, each in enumerate(cells))
    label = f"{len(cells) - len(unread)} of {len(cells)} partitions read to the cut"
    return _svg(label, drawn, height)


def in_seconds(seconds: float) -> str:
    """Return a duration with its significant digits."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _svg(label: str, body: str, height: int = HEIGHT) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )


def _steps(minutes: Sequence[Latency]) -> list[Latency]:
    """Return at most ``COLUMNS`` steps, in order; each step shows its worst minute."""
    ordered = sorted(minutes, key=lambda each: each.minute.timestamp() if each.minute else 0.0)
    width = max(1, -(-len(ordered) // COLUMNS))
    chunks = [ordered[at : at + width] for at in range(0, len(ordered), width)]
    return [max(chunk, key=lambda each: each.p99) for chunk in chunks]


def _points(name: str, steps: Sequence[Latency], top: float) -> list[str]:
    heights = [getattr(each, name) for each in steps]
    corners = []
    for place, height in enumerate(heights):
        y = y_of(height, top)
        corners += [f"{x_of(place, len(steps))},{y}", f"{x_of(place + 1, len(steps))},{y}"]
    return corners


def _seconds_grid(top: float) -> str:
    lines = []
    for each in (0.0, top / 2, top):
        y = y_of(each, top)
        lines.append(
            f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - 4}" y2="{y}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{in_seconds(each)}</text>'
        )
    return "".join(lines)


def _bar(place: int, places: int, run: tuple[datetime, str, int], top: int) -> str:
    at, verdict, found = run
    left, right = x_of(place, places), x_of(place + 1, places)
    y = min(y_of(found, top), y_of(0, top) - 2)
    width, height = max(right - left - 2, 1), y_of(0, top) - y
    return (
        f'<rect class="{escape(verdict)}" x="{left + 1}" y="{y}" width="{width:.1f}"'
        f' height="{height:.1f}"><title>{at:%Y-%m-%d %H:%M} {escape(verdict)}:'
        f" {format_count(found)}</title></rect>"
    )


def _cell(number: int, partition: Partition, unread: bool) -> str:
    row, column = divmod(number, CELLS_PER_ROW)
    state = "unread" if unread else "read"
    label = "not read" if unread else "read to the cut"
    place = partition.topic if partition.number == WHOLE_TOPIC else " / ".join(map(str, partition))
    return (
        f'<rect class="{state}" x="{column * CELL}" y="{row * CELL}" width="{CELL - 2}"'
        f' height="{CELL - 2}"><title>{escape(place)}: {label}</title></rect>'
    )
