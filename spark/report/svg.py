"""The chart of committed messages (step) over published ones (area), as inline SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from markupsafe import Markup, escape

from spark.report.language import ENGLISH, Words
from spark.report.report import Minute, spaced

WIDTH: Final = 880
HEIGHT: Final = 200
LEFT: Final = 56
TOP: Final = 12
BOTTOM: Final = 24
COLUMNS: Final = 240
"""More minutes than this are drawn in wider steps."""


def chart(minutes: Sequence[Minute], t: Words = ENGLISH) -> Markup:
    """Return the chart; an empty one says so."""
    steps = binned(minutes)
    if not steps:
        return note(t("No message in the range that was read."))
    top = max(max(step.committed, step.published) for step in steps)
    published = _steps([step.published for step in steps], top)
    committed = _steps([step.committed for step in steps], top)
    floor = f"{x_of(len(steps), len(steps))},{y_of(0, top)}"
    area = f"M{LEFT},{y_of(0, top)} L{' L'.join(published)} L{floor} Z"
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_label(steps, t)}">'
        f"{grid(top)}"
        f'<path class="published" d="{area}"/>'
        f'<path class="committed" d="M{" L".join(committed)}"/>'
        f"{ends(steps[0].minute, steps[-1].minute)}</svg>"
    )


def binned(minutes: Sequence[Minute]) -> list[Minute]:
    """Return equal steps from the first to the last minute, at most ``COLUMNS`` of them."""
    if not minutes:
        return []
    first = minutes[0].minute
    span = int((minutes[-1].minute - first) / timedelta(minutes=1)) + 1
    width = -(-span // COLUMNS)
    sums = [[0, 0] for _ in range(-(-span // width))]
    for each in minutes:
        place = int((each.minute - first) / timedelta(minutes=width))
        sums[place][0] += each.committed
        sums[place][1] += each.published
    return [
        Minute(minute=first + timedelta(minutes=place * width), committed=c, published=p)
        for place, (c, p) in enumerate(sums)
    ]


def _steps(heights: Sequence[int], top: int) -> list[str]:
    """Return the corners of a step line, two a value."""
    corners = []
    for place, height in enumerate(heights):
        y = y_of(height, top)
        corners += [f"{x_of(place, len(heights))},{y}", f"{x_of(place + 1, len(heights))},{y}"]
    return corners


def x_of(place: int, places: int) -> float:
    """Return where a place of so many lies, in the units of the drawing."""
    return round(LEFT + (WIDTH - LEFT - 4) * place / places, 1)


def y_of(height: float, top: float) -> float:
    """Return how far down a height lies, below the top of the scale."""
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - height / (top or 1)), 1)


def grid(top: int) -> str:
    """Return the lines of a scale of counts."""
    lines = []
    for height in sorted({0, top // 2, top}):
        y = y_of(height, top)
        lines.append(
            f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - 4}" y2="{y}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{spaced(height)}</text>'
        )
    return "".join(lines)


def ends(first: datetime, last: datetime) -> str:
    """Return the first and the last moment below a chart."""
    places = ((LEFT, "start", first), (WIDTH - 4, "end", last))
    return "".join(
        f'<text x="{x}" y="{HEIGHT - 6}" text-anchor="{anchor}">{moment(at)}</text>'
        for x, anchor, at in places[: 1 if first == last else 2]
    )


def moment(at: datetime) -> str:
    """Return a moment as a chart shows it."""
    return f"{at:%Y-%m-%d %H:%M}"


def note(text: str) -> Markup:
    """Return what stands where there is nothing to draw."""
    return Markup(f'<p class="note">{escape(text)}</p>')


def _label(steps: Sequence[Minute], t: Words) -> str:
    label = t(
        "{committed} committed and {published} published messages from {first} to {last}",
        committed=spaced(sum(step.committed for step in steps)),
        published=spaced(sum(step.published for step in steps)),
        first=moment(steps[0].minute),
        last=moment(steps[-1].minute),
    )
    return str(escape(label))
