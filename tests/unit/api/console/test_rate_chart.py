"""The charts of the last hour, as numbers and as words."""

from __future__ import annotations

from typing import Any

from api.console.rate_chart import RateBar, part_times, rate_charts

BEGINS_AT = "2026-09-21T13:05:30+00:00"


def answer(counts: dict[int, int], **facts: Any) -> dict[str, Any]:
    """Return an answer with one series, by minute."""
    series = {
        "name": "prepared",
        "counts": [counts.get(minute, 0) for minute in range(60)],
        "estimated": False,
        "searched_back_to": None,
    }
    return {"begins_at": BEGINS_AT, "data": [series | facts]}


def test_the_busiest_minute_has_the_whole_height_and_a_quiet_one_no_bar() -> None:
    [chart] = rate_charts(answer({10: 200, 59: 50}))
    assert chart.bars == (RateBar(x=100, height=60.0), RateBar(x=590, height=15.0))
    assert chart.parts == (0, 200, 0, 0, 0, 50)


def test_the_words_say_what_the_chart_draws() -> None:
    [chart] = rate_charts(answer({10: 200, 59: 50}))
    assert chart.title == "Prepared"
    assert chart.words == "250 in the last hour, 200 in the busiest minute"
    assert chart.busiest_at == "2026-09-21T13:15:30+00:00"
    assert chart.further == "50 in the last minute."


def test_the_words_say_what_is_estimated_and_what_was_not_looked_at() -> None:
    [chart] = rate_charts(
        answer({0: 7}, estimated=True, searched_back_to="2026-09-21T14:00:00+02:00")
    )
    assert chart.words == "about 7 in the last hour, about 7 in the busiest minute"
    assert chart.further == "about 0 in the last minute."
    assert chart.searched_back_to == "2026-09-21T14:00:00+02:00"


def test_an_hour_without_messages_has_no_bars() -> None:
    [chart] = rate_charts(answer({}))
    assert (chart.bars, chart.words, chart.busiest_at) == ((), "none in the last hour.", None)


def test_the_parts_of_the_table_begin_every_ten_minutes() -> None:
    times = part_times(answer({}))
    assert (len(times), times[1]) == (6, "2026-09-21T13:15:30+00:00")


def test_a_key_that_sees_nothing_gets_no_chart() -> None:
    assert rate_charts({"begins_at": None, "data": []}) == []
