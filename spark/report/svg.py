"""The chart of committed messages (line) over published ones (area), as inline SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from markupsafe import Markup, escape

from spark.report.report import Minute, format_count

WIDTH: Final = 880
HEIGHT: Final = 200
LEFT: Final = 56
TOP: Final = 12
BOTTOM: Final = 24
COLUMNS: Final = 240
"""Above this number of minutes several minutes become one step."""


def chart(minutes: Sequence[Minute]) -> Markup:
    """Return the chart, or a note if there is nothing to draw."""
    steps = binned(minutes)
    if not steps:
        return note("No message in the range that was read.")
    top = max(max(step.committed, step.published) for step in steps)
    published = _steps([step.published for step in steps], top)
    committed = _steps([step.committed for step in steps], top)
    floor = f"{x_of(len(steps), len(steps))},{y_of(0, top)}"
    area = f"M{LEFT},{y_of(0, top)} L{' L'.join(published)} L{floor} Z"
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_label(steps)}">'
        f"{grid(top)}"
        f'<path class="published" d="{area}"/>'
        f'<path class="committed" d="M{" L".join(committed)}"/>'
        f"{ends(steps[0].minute, steps[-1].minute)}</svg>"
    )


def binned(minutes: Sequence[Minute]) -> list[Minute]:
    """Return equal steps from the first to the last minute, at most ``COLUMNS``."""
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
    """Return the corners of a step line, two per value."""
    corners = []
    for place, height in enumerate(heights):
        y = y_of(height, top)
        corners += [f"{x_of(place, len(heights))},{y}", f"{x_of(place + 1, len(heights))},{y}"]
    return corners


def x_of(place: int, places: int) -> float:
    """Return the x coordinate of a place among ``places``, in the units of the drawing."""
    return round(LEFT + (WIDTH - LEFT - 4) * place / places, 1)


def y_of(height: float, top: float) -> float:
    """Return the y coordinate of a height on a scale that ends at ``top``."""
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - height / (top or 1)), 1)


def grid(top: int) -> str:
    """Return the grid lines of a scale of counts."""
    lines = []
    for height in sorted({0, top // 2, top}):
        y = y_of(height, top)
        lines.append(
            f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - 4}" y2="{y}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{format_count(height)}</text>'
        )
    return "".join(lines)


def ends(first: datetime, last: datetime) -> str:
    """Return the labels below a chart: its first and last time."""
    places = ((LEFT, "start", first), (WIDTH - 4, "end", last))
    return "".join(
        f'<text x="{x}" y="{HEIGHT - 6}" text-anchor="{anchor}">{moment(at)}</text>'
        for x, anchor, at in places[: 1 if first == last else 2]
    )


def moment(at: datetime) -> str:
    """Return a time as text for a chart."""
    return f"{at:%Y-%m-%d %H:%M}"


def note(text: str) -> Markup:
    """Return the text that is shown instead of an empty chart."""
    return Markup(f'<p class="note">{escape(text)}</p>')


def _label(steps: Sequence[Minute]) -> str:
    committed = format_count(sum(step.committed for step in steps))
    published = format_count(sum(step.published for step in steps))
    return (
        f"{committed} committed and {published} published messages"
        f" from {moment(steps[0].minute)} to {moment(steps[-1].minute)}"
    )
