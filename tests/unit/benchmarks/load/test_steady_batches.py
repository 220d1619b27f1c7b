"""The reader of a backlog sees a repeated record and one that comes before its time."""

from __future__ import annotations

import pytest

from benchmarks.load.steady_batches import KeyOrder


def order_of(*numbers: int) -> KeyOrder:
    """Return the judgement of records of one key, beside another key's."""
    order = KeyOrder()
    for number in numbers:
        order.take(b"other", b"%010d x" % order.records)
        order.take(b"key", b"%010d x" % number)
    return order


def test_rising_numbers_with_gaps_are_in_order() -> None:
    assert (order_of(0, 250, 500).records, order_of(0, 250, 500).out_of_order) == (6, 0)


@pytest.mark.parametrize("numbers", [(0, 0), (0, 500, 250), (500, 0, 250)])
def test_a_repeated_and_an_early_record_are_counted(numbers: tuple[int, ...]) -> None:
    assert order_of(*numbers).out_of_order >= 1
