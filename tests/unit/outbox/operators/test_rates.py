"""The minutes of the last hour, from samples of a log."""

from __future__ import annotations

from outbox.operators.rates import MINUTES, LogSlice, series_of


def sliced(
    *, messages: list[int], minutes: list[int], cut_off: bool = False, last_minute: int = 0
) -> LogSlice:
    """Return a slice of 100 ids, of which the first ten were read."""
    return LogSlice(
        low=1000,
        high=1100,
        last=1009,
        minutes=minutes,
        messages=messages,
        cut_off=cut_off,
        last_minute=last_minute,
    )


def test_a_slice_that_was_read_whole_is_counted_minute_by_minute() -> None:
    series = series_of(
        "prepared",
        [sliced(messages=[2, 3], minutes=[0, 59]), sliced(messages=[4], minutes=[59])],
    )
    assert (series.counts[0], series.counts[59], sum(series.counts)) == (2, 7, 9)
    assert not series.estimated


def test_the_rest_of_a_long_slice_is_estimated_and_spread_until_its_end() -> None:
    long = sliced(messages=[2, 2, 1], minutes=[10, 10, 10], cut_off=True, last_minute=14)
    series = series_of("prepared", [long])
    assert series.counts[10:15] == (10, 10, 10, 10, 10)
    assert sum(series.counts) == 50
    assert series.estimated


def test_what_was_written_while_it_is_read_counts_to_the_last_minute() -> None:
    series = series_of("prepared", [sliced(messages=[5, 1], minutes=[MINUTES, -1])])
    assert (series.counts[-1], sum(series.counts)) == (5, 5)


def test_nothing_read_is_nothing_counted() -> None:
    assert series_of("prepared", []).counts == (0,) * MINUTES
