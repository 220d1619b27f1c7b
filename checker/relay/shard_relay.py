"""Relays one shard: commit log -> Kafka -> progress, a batch a round, one thread.

Every decision is made by ``outbox.relay.protocol``; this loop has its plans performed and reports
back what came of them. Nothing is remembered across a lost session.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from checker.relay.executor import RelayExecutor
from checker.relay.observer import RelayObserver
from checker.relay.publish_slots import PublishSlots
from outbox.clock import Clock
from outbox.errors import CursorMoved, DatabaseUnavailable, KafkaUnavailable, PublisherFenced
from outbox.relay.ports import CommitLog, ProgressLog, Publisher
from outbox.relay.protocol import actions as do
from outbox.relay.protocol import answers as came
from outbox.relay.protocol.state import Failure, HaltReason, Phase, Relay
from outbox.relay.protocol.step import step


class RelayRound(NamedTuple):
    """What one round did, and how long to rest before the next."""

    phase: Phase
    published: int
    rest_seconds: float
    until_commits: bool
    """A new commit in the shard ends the rest."""
    halt: HaltReason | None


class ShardRelay:
    """The relay of one shard."""

    def __init__(
        self,
        shard: int,
        commit_log: CommitLog,
        publisher: Publisher,
        progress_log: ProgressLog,
        clock: Clock,
        facts: RelayObserver,
        turns: PublishSlots,
        *,
        at_least_once: bool = False,
    ) -> None:
        self._state = Relay(shard=shard, at_least_once=at_least_once)
        self._turns = turns
        self._work = RelayExecutor(commit_log, publisher, progress_log, clock, facts)
        self._facts = facts

    def run_once(self) -> RelayRound:
        """Go on until a batch is committed or there is nothing to do; never rests itself.

        Publishing takes a turn, taking over does not: it may wait long for Kafka.
        """
        if self._state.phase is not Phase.RUN:
            return self._round(came.Rested())
        return self._turns.take(lambda: self._round(came.Rested()))

    def close(self) -> RelayRound:
        """Store what is known and give the shard back."""
        return self._round(came.StopAsked())

    def run(self, stop: threading.Event, wake: threading.Event) -> None:
        """Relay until asked to stop; ``wake`` ends a rest early, and goes with ``stop``."""
        try:
            while not stop.is_set():
                wake.clear()
                done = self.run_once()
                if done.rest_seconds:
                    (wake if done.until_commits else stop).wait(done.rest_seconds)
        finally:
            self.close()

    def _round(self, answer: came.Answer) -> RelayRound:
        published = 0
        while True:
            was = self._state
            self._state, plan = step(was, answer)
            self._facts.moved(was, self._state)
            if isinstance(answer, came.CommitEnded) and was.batch:
                published += len(was.batch.published)
            answer = self._performed(plan)
            rest = plan[-1]
            if isinstance(rest, do.Rest) and not isinstance(answer, came.Failed):
                return RelayRound(
                    self._state.phase,
                    published,
                    rest.seconds,
                    rest.until_commits,
                    self._state.halt,
                )

    def _performed(self, plan: tuple[do.Action, ...]) -> came.Answer:
        """Have the plan performed; a failure ends it and is the answer."""
        try:
            return self._work.perform(self._state, plan)
        except DatabaseUnavailable as error:
            return self._failed(Failure.DATABASE, error)
        except CursorMoved as error:
            return self._failed(Failure.OVERTAKEN, error)
        except PublisherFenced as error:
            return self._failed(Failure.FENCED, error)
        except KafkaUnavailable as error:
            return self._failed(Failure.KAFKA, error)

    def _failed(self, failure: Failure, error: Exception) -> came.Failed:
        self._facts.failed(self._state, failure, error)
        return came.Failed(failure)
