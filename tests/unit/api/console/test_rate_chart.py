"""The charts of the last hour, as numbers for a drawing."""

from __future__ import annotations

from typing import Any

from api.console.rate_chart import RateBar, rate_charts


def answer(counts: dict[int, int]) -> dict[str, Any]:
    """Return an answer with one series, by minute."""
    by_minute = [counts.get(minute, 0) for minute in range(60)]
    return {"data": [{"name": "prepared", "counts": by_minute}]}


def test_the_busiest_minute_has_the_whole_height_and_a_quiet_one_no_bar() -> None:
    [chart] = rate_charts(answer({10: 200, 59: 50}))
    assert chart.bars == (RateBar(x=100, height=60.0), RateBar(x=590, height=15.0))
    assert (chart.total, chart.busiest, chart.last) == (250, 200, 50)


def test_an_hour_without_messages_has_no_bars() -> None:
    [chart] = rate_charts(answer({}))
    assert (chart.bars, chart.total) == ((), 0)
