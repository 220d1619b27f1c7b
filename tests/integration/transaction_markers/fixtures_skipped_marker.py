"""One kill of a leader between flush and commit, and what happens to the transactions of that time.

All transactions are open when the broker dies and are ended while their partition has no leader.
When the broker is back, each one that never ended is treated in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from confluent_kafka import KafkaException, Producer

from outbox.kafka.client_config import producer_config
from tests.fixtures_waiting import wait_for
from tests.integration.transaction_markers.fixtures_mortal_brokers import MortalBrokers

RECORDS = 5
END_SECONDS = 30.0
FENCE_SECONDS = 15.0
"""A sound broker fences only after the markers, so it cannot answer while their leader is away."""
SETTLE_SECONDS = 30.0
"""Markers that are only late arrive within a few seconds of the leader's return."""
FIRST, SECOND = "first", "second"


class Ending(StrEnum):
    """How a transaction is ended while its partition has no leader."""

    COMMIT = "commit"
    FENCE = "fence"
    """a new producer of the same transactional id"""


class Then(StrEnum):
    """The next transaction of the same transactional id on that partition."""

    COMMIT = "commit"
    ABORT = "abort"
    SAME_HANDLE_ABORT = "abort, same producer"
    AGAIN = "publish again and commit"
    HEAL_COMMIT = "one record and commit, then abort"
    HEAL_ABORT = "one record and abort, then publish again and commit"


CASES = (
    (Ending.COMMIT, Then.COMMIT),
    (Ending.COMMIT, Then.ABORT),
    (Ending.COMMIT, Then.SAME_HANDLE_ABORT),
    (Ending.COMMIT, Then.HEAL_COMMIT),
    (Ending.FENCE, Then.AGAIN),
    (Ending.FENCE, Then.HEAL_ABORT),
)


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction that was open when the leader died, and what became of it."""

    ending: Ending
    then: Then
    topic: str
    handle: Producer
    answer: str = ""
    """what the end answered"""
    hanging: bool = False
    """whether the last stable offset stayed behind after the leader's return"""
    visible_before: int = 0
    """records of the transaction that a read_committed consumer reads before the next one"""
    visible_after: int = 0
    """the same after the next one"""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def lost(self) -> bool:
        """Return whether the commit said OK and its records are gone for ever."""
        return self.ending is Ending.COMMIT and self.answer == "OK" and not self.visible_after

    @property
    def doubled(self) -> bool:
        """Return whether records that were published once more are visible twice."""
        return self.visible_after > RECORDS


def one_kill(brokers: MortalBrokers, *, await_leaderless: bool = True) -> list[Transaction]:
    """Let one transaction of each case lose its leader, and return what became of them."""
    ended = ended_leaderless(brokers, await_leaderless=await_leaderless)
    for each in ended:
        each.visible_before = _visible(brokers, each.topic)
        NEXT[each.then](brokers, each)
        each.visible_after = _visible(brokers, each.topic)
    return ended


def ended_leaderless(brokers: MortalBrokers, *, await_leaderless: bool = True) -> list[Transaction]:
    """Let one transaction of each case lose its leader; return them when the leader is back."""
    topics = brokers.mortal_topics(len(CASES))
    open_ones = [
        _begun(brokers, ending, then, topic)
        for (ending, then), topic in zip(CASES, topics, strict=True)
    ]
    brokers.kill(topics, await_leaderless=await_leaderless)
    for each in open_ones:
        _end(brokers, each)
    brokers.restart(topics)
    _settle(brokers, open_ones)
    return open_ones


def _begun(brokers: MortalBrokers, ending: Ending, then: Then, topic: str) -> Transaction:
    handle = _handle(brokers, topic)
    _publish(handle, topic, RECORDS, FIRST)
    return Transaction(ending=ending, then=then, topic=topic, handle=handle)


def _handle(brokers: MortalBrokers, topic: str) -> Producer:
    """Return a producer of the topic's transactional id; older ones are fenced."""
    handle = Producer(producer_config(brokers.bootstrap_servers, {}, f"relay-{topic}"))
    handle.init_transactions(FENCE_SECONDS)
    return handle


def _publish(handle: Producer, topic: str, count: int, what: str) -> None:
    """Begin a transaction and return when the broker has acknowledged its records."""
    refused: list[Any] = []
    handle.begin_transaction()
    for number in range(count):
        handle.produce(
            topic,
            f"{what} {number}".encode(),
            partition=0,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert not handle.flush(END_SECONDS)
    assert not refused, refused


def _end(brokers: MortalBrokers, each: Transaction) -> None:
    try:
        if each.ending is Ending.COMMIT:
            each.handle.commit_transaction(END_SECONDS)
        else:
            each.handle = _handle(brokers, each.topic)
        each.answer = "OK"
    except KafkaException as error:
        each.answer = str(error.args[0].name())


def _settle(brokers: MortalBrokers, open_ones: Sequence[Transaction]) -> None:
    """Give late markers their time, then note which transactions never ended."""
    topics = [each.topic for each in open_ones]
    with suppress(AssertionError):
        wait_for(lambda: not brokers.behind(topics), seconds=SETTLE_SECONDS, every=0.5)
    behind = brokers.behind(topics)
    for each in open_ones:
        each.hanging = each.topic in behind


def _visible(brokers: MortalBrokers, topic: str) -> int:
    """Return how many records of a test's payload are visible, the heal's own left out."""
    return sum(value.startswith(FIRST.encode()) for value in brokers.values(topic))


def _next(end: Callable[[Producer], None], what: str, *, fresh: bool = True) -> Any:
    def run(brokers: MortalBrokers, each: Transaction) -> None:
        handle = _handle(brokers, each.topic) if fresh else each.handle
        _publish(handle, each.topic, RECORDS if what == FIRST else 1, what)
        end(handle)
        wait_for(lambda: not brokers.behind([each.topic]), seconds=SETTLE_SECONDS)
        each.handle = handle

    return run


def _commit(handle: Producer) -> None:
    handle.commit_transaction(END_SECONDS)


def _abort(handle: Producer) -> None:
    handle.abort_transaction(END_SECONDS)


def _both(*steps: Any) -> Any:
    def run(brokers: MortalBrokers, each: Transaction) -> None:
        for step in steps:
            step(brokers, each)

    return run


NEXT: dict[Then, Any] = {
    Then.COMMIT: _next(_commit, SECOND),
    Then.ABORT: _next(_abort, SECOND),
    Then.SAME_HANDLE_ABORT: _next(_abort, SECOND, fresh=False),
    Then.AGAIN: _next(_commit, FIRST),
    Then.HEAL_COMMIT: _both(_next(_commit, SECOND), _next(_abort, SECOND, fresh=False)),
    Then.HEAL_ABORT: _both(_next(_abort, SECOND), _next(_commit, FIRST, fresh=False)),
}
