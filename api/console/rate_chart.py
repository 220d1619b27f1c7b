"""Charts of the last hour, as numbers for an SVG and as words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from api.console.page_renderer import read_moment

TITLES: Final = {
    "prepared": "Prepared",
    "committed": "Committed",
    "published": "Published to Kafka",
    "checked": "Checks made",
}
BAR_WIDTH: Final = 10
HEIGHT: Final = 60
PART_MINUTES: Final = 10
"""The table beside the charts has one column for each so many minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateBar:
    """A minute of a chart: its place and its height in the units of the drawing."""

    x: int
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChart:
    """One chart; ``parts`` are the sums of PART_MINUTES each.

    The words say the same: those up to the time of the busiest minute, and those that follow it.
    """

    name: str
    title: str
    words: str
    busiest_at: str | None
    further: str
    searched_back_to: str | None
    bars: tuple[RateBar, ...]
    parts: tuple[int, ...]


def rate_charts(answer: Mapping[str, Any]) -> list[RateChart]:
    """Return a chart of each series of `GET /v1/rates`."""
    if not answer["data"]:
        return []
    begins_at = read_moment(answer["begins_at"])
    return [_chart(series, begins_at) for series in answer["data"]]


def part_times(answer: Mapping[str, Any]) -> list[str]:
    """Return when each part of the table begins."""
    begins_at = read_moment(answer["begins_at"])
    return [
        (begins_at + timedelta(minutes=minute)).isoformat() for minute in range(0, 60, PART_MINUTES)
    ]


def _chart(series: Mapping[str, Any], begins_at: datetime) -> RateChart:
    counts = series["counts"]
    most = max(counts)
    return RateChart(
        name=series["name"],
        title=TITLES[series["name"]],
        **_words(series, begins_at),
        searched_back_to=series["searched_back_to"],
        bars=tuple(
            RateBar(x=minute * BAR_WIDTH, height=round(HEIGHT * count / most, 1))
            for minute, count in enumerate(counts)
            if count
        ),
        parts=tuple(
            sum(counts[first : first + PART_MINUTES])
            for first in range(0, len(counts), PART_MINUTES)
        ),
    )


def _words(series: Mapping[str, Any], begins_at: datetime) -> dict[str, Any]:
    counts = series["counts"]
    total = sum(counts)
    if not total:
        return {"words": "none in the last hour.", "busiest_at": None, "further": ""}
    busiest = counts.index(max(counts))
    about = "about " if series["estimated"] else ""
    return {
        "words": f"{about}{total} in the last hour, {about}{counts[busiest]} in the busiest minute",
        "busiest_at": (begins_at + timedelta(minutes=busiest)).isoformat(),
        "further": f"{about}{counts[-1]} in the last minute.",
    }
