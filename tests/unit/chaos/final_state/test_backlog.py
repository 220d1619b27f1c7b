"""A backlog may take as long as it moves; one that stands still has not drained."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, repeat

import pytest

from chaos.final_state.backlog import LOOK_SECONDS, UNREAD, Backlog, wait_drained

FOUR_LOOKS = 4 * LOOK_SECONDS
EMPTY = Backlog(prepared=0, committed=0, parked=3, held=0)


def drained(looks: Iterator[Backlog | None]) -> Backlog:
    """Return the backlog that is left after these looks, without a pause between them."""
    return wait_drained(lambda: next(looks), FOUR_LOOKS, lambda _: None, 0.0)[0]


def test_a_backlog_that_shrinks_slowly_is_waited_for() -> None:
    shrinks = (Backlog(0, n // 3, 3, 0) for n in range(30, 0, -1))
    assert drained(chain(shrinks, repeat(EMPTY))) == EMPTY


@pytest.mark.parametrize("left", [Backlog(1, 0, 0, 0), Backlog(0, 2, 0, 0), Backlog(0, 0, 0, 3)])
def test_a_backlog_that_stands_still_has_not_drained(left: Backlog) -> None:
    assert drained(chain(repeat(left, 5), repeat(EMPTY))) == left


def test_a_backlog_that_moves_for_ever_has_not_drained() -> None:
    assert not drained(Backlog(0, 1 + n % 2, 0, 0) for n in count()).done


def test_a_backlog_that_nobody_could_read_is_not_empty() -> None:
    left = drained(repeat(None))
    assert left == UNREAD
    assert not left.done


def test_an_empty_backlog_may_be_unreadable_for_a_moment() -> None:
    assert drained(chain([EMPTY, None, None], repeat(EMPTY))) == EMPTY
