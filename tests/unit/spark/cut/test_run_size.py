"""A small run does two steps at the same time, any other run one after the other."""

from __future__ import annotations

from threading import Barrier, Event, get_ident

import pytest

from spark.columns.staging import IN_MEMORY
from spark.cut.run_size import both

LONG: float = 30.0
"""Far more than the other step needs."""


def test_in_a_small_run_each_step_meets_the_other() -> None:
    meeting = Barrier(2)
    assert {*both(IN_MEMORY, lambda: meeting.wait(LONG), lambda: meeting.wait(LONG))} == {0, 1}


def test_any_other_run_does_the_first_step_and_then_the_second() -> None:
    done: list[int] = []
    answers = both("file:///stage", lambda: done.append(1), lambda: (*done, get_ident()))
    assert answers == (None, (1, get_ident()))


def test_a_step_that_fails_waits_for_the_other_one() -> None:
    begun, done = Event(), Event()

    def fail() -> None:
        begun.wait(LONG)
        raise ValueError("the first one")

    def go_on() -> None:
        begun.set()
        done.wait(0.01)
        done.set()
        raise ValueError("the second one")

    with pytest.raises(ValueError, match="the first one"):
        both(IN_MEMORY, fail, go_on)
    assert done.is_set()


def test_what_fails_beside_the_first_step_fails_the_run() -> None:
    with pytest.raises(ZeroDivisionError):
        both(IN_MEMORY, lambda: None, lambda: 1 // 0)
