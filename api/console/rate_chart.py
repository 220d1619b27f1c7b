"""Charts of the last hour, as numbers for an SVG and as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

TITLES: Final = {
    "prepared": "Prepared",
    "committed": "Committed",
    "published": "Published to Kafka",
    "checked": "Checks made",
}
BAR_WIDTH: Final = 10
HEIGHT: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RateBar:
    """A minute of a chart: its place and its height in the units of the drawing."""

    x: int
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChart:
    """One chart, and what it draws in numbers."""

    name: str
    title: str
    total: int
    busiest: int
    last: int
    bars: tuple[RateBar, ...]


def rate_charts(answer: Mapping[str, Any]) -> list[RateChart]:
    """Return a chart of each series of `GET /v1/rates`."""
    return [_chart(series["name"], series["counts"]) for series in answer["data"]]


def _chart(name: str, counts: Sequence[int]) -> RateChart:
    most = max(counts)
    return RateChart(
        name=name,
        title=TITLES[name],
        total=sum(counts),
        busiest=most,
        last=counts[-1],
        bars=tuple(
            RateBar(x=minute * BAR_WIDTH, height=round(HEIGHT * count / most, 1))
            for minute, count in enumerate(counts)
            if count
        ),
    )
