"""Slots of the relay: few at once, in order, and no shard waits for ever."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from checker.relay.publish_slots import PublishSlots
from tests.fixtures_waiting import wait_for


@dataclass
class Done:
    published: int = 0


def make_turns(at_once: int, patience_seconds: float = 20) -> PublishSlots:
    return PublishSlots(at_once, patience_seconds)


def test_slots_are_given_out_in_the_order_of_the_requests() -> None:
    turns, order, threads = make_turns(1), list[int](), list[threading.Thread]()

    def publish(number: int) -> Done:
        order.append(number)
        return Done()

    def hold() -> Done:
        for number in range(5):
            threads.append(threading.Thread(target=turns.take, args=(lambda n=number: publish(n),)))
            threads[-1].start()
            wait_for(lambda n=number: len(turns._waiting) == n + 1)  # type: ignore[misc]
        return Done()

    turns.take(hold)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_stuck_slot_delays_the_others_only_for_a_moment() -> None:
    turns = make_turns(1, patience_seconds=0.01)
    assert turns.take(lambda: turns.take(lambda: Done(7))) == Done(7)
    assert (turns._free, len(turns._waiting)) == (1, 0)


def test_a_turn_may_end_before_the_work_and_is_handed_on_once() -> None:
    turns, order = make_turns(1), list[str]()

    def publish_and_save() -> Done:
        turns.give_back()
        other.start()
        other.join()
        order.append("saved")
        return Done()

    other = threading.Thread(target=turns.take, args=(lambda: order.append("another's batch"),))
    turns.take(publish_and_save)
    turns.give_back()
    assert order == ["another's batch", "saved"]
    assert (turns._free, len(turns._waiting)) == (1, 0)
