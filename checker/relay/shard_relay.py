"""Relays one shard: commit log -> Kafka -> progress, one batch per round, in one thread.

``outbox.relay.protocol`` makes every decision. This loop executes its plans and passes the answers
back. Nothing is kept across a lost session.
"""

from __future__ import annotations

from typing import NamedTuple

from checker.relay.executor import RelayExecutor, RelayStores
from checker.relay.observer import RelayObserver
from checker.relay.publish_slots import PublishSlots
from outbox.clock import Clock
from outbox.errors import (
    CommittedMessageGone,
    CursorMoved,
    DatabaseUnavailable,
    KafkaUnavailable,
    PublisherFenced,
    TransactionStuck,
)
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.state import Failure, HaltReason, Phase, Relay
from outbox.relay.protocol.step import step


class RelayRound(NamedTuple):
    """The result of one round, and the rest before the next."""

    phase: Phase
    published: int
    rest_seconds: float
    until_commits: bool
    """A new commit in the shard ends the rest."""
    halt: HaltReason | None
    failed: bool = False
    """It owns the shard, and a store or a record has failed since it last published or was idle."""


class ShardRelay:
    """The relay of one shard."""

    def __init__(
        self,
        shard: int,
        stores: RelayStores,
        clock: Clock,
        observer: RelayObserver,
        slots: PublishSlots,
    ) -> None:
        self._state = Relay(shard=shard)
        self._slots = slots
        self._executor = RelayExecutor(stores, clock, observer)
        self._observer = observer

    def run_once(self) -> RelayRound:
        """Continue until a batch is committed or there is nothing to do; never rests itself.

        Publishing takes a slot. A takeover takes none, because it may wait long for Kafka.
        """
        self._executor.serve()
        if self._state.phase is not Phase.RUN:
            return self._round(answers.Rested())
        return self._slots.take(lambda: self._round(answers.Rested()))

    def close(self) -> RelayRound:
        """Store the progress and release the shard."""
        return self._round(answers.StopAsked())

    def _round(self, answer: answers.Answer) -> RelayRound:
        published = 0
        while True:
            was = self._state
            self._state, plan = step(was, answer)
            self._observer.moved(was, self._state)
            if isinstance(answer, answers.CommitEnded) and was.batch:
                published += len(was.batch.published)
            rest = plan[-1]
            if isinstance(rest, actions.Rest):
                # What is left, such as saving the progress, need not keep others from publishing.
                self._slots.give_back()
            answer = self._performed(plan)
            if isinstance(rest, actions.Rest) and not isinstance(answer, answers.Failed):
                return RelayRound(
                    self._state.phase,
                    published,
                    rest.seconds,
                    rest.until_commits,
                    self._state.halt,
                    self._state.failures > 0 and self._state.phase not in (Phase.IDLE, Phase.HALT),
                )

    def _performed(self, plan: tuple[actions.Action, ...]) -> answers.Answer:
        """Execute the plan; a failure ends it and is the answer."""
        try:
            return self._executor.perform(self._state, plan)
        except CommittedMessageGone as error:
            return self._failed(Failure.ROW_MISSING, error)
        except DatabaseUnavailable as error:
            return self._failed(Failure.DATABASE, error)
        except CursorMoved as error:
            return self._failed(Failure.OVERTAKEN, error)
        except PublisherFenced as error:
            return self._failed(Failure.FENCED, error)
        except TransactionStuck as error:
            return self._failed(Failure.STUCK, error)
        except KafkaUnavailable as error:
            return self._failed(Failure.KAFKA, error)

    def _failed(self, failure: Failure, error: Exception) -> answers.Failed:
        self._observer.failed(self._state, failure, error)
        return answers.Failed(failure)
