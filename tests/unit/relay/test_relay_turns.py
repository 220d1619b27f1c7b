"""Turns of the relay: few at once, in order, and nobody waits for ever."""

from __future__ import annotations

import threading

from checker.relay_turns import RelayTurns
from tests.waiting import wait_for


def test_no_more_than_the_allowed_number_publish_at_once() -> None:
    turns, inside, most = RelayTurns(2, patience_seconds=20), [0], [0]
    lock = threading.Lock()

    def publish() -> None:
        for _ in range(50):
            with turns.turn():
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                with lock:
                    inside[0] -= 1

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, 1 <= most[0] <= 2) == ([0], True)


def test_turns_are_handed_on_in_the_order_asked() -> None:
    turns, order = RelayTurns(1, patience_seconds=20), list[int]()

    def publish(number: int) -> None:
        with turns.turn():
            order.append(number)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(5)]
    with turns.turn():
        for number, thread in enumerate(threads, 1):
            thread.start()
            wait_for(lambda n=number: len(turns._waiting) == n)  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_stuck_turn_holds_the_others_up_for_a_moment_only() -> None:
    turns = RelayTurns(1, patience_seconds=0.01)
    with turns.turn(), turns.turn():
        assert not turns._waiting
    with turns.turn():
        assert turns._free == 0
    assert turns._free == 1
