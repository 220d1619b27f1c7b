"""One relay thread per shard, and one thread that wakes them when commits have become final.

That thread looks often while a relay rests that has published before. While all of those are at
work it would wake none, and a look costs PostgreSQL half of what an END costs. Without commits it
looks less and less often: an idle service is mostly the cost of these looks.

Several processes share the shards: each thread waits for the lock of its shard. Each process asks
for the locks in a random order, so processes that start together get about as many shards each. No
thread starts before the servers' settings have been found safe.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from checker.relay.shard_relay import RelayRound
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.telemetry.events import Event, get_logger

if TYPE_CHECKING:
    from outbox.postgres.relay.commit_watch import PostgresCommitWatch

PAUSE_SECONDS: Final = 1.0
"""The pause before a failed relay is opened again, and before a lost watch is read again."""
ADMISSION_SECONDS: Final = 2.0
"""The pause between two checks of servers that are unavailable or unsafe."""
JOIN_SECONDS: Final = 8.0
STAGGER_SECONDS: Final = 0.025
WATCH_BUSY_SECONDS: Final = 0.003
WATCH_IDLE_SECONDS: Final = 0.015
WATCH_QUIET_SECONDS: Final = 0.05
IDLE_POLLS: Final = 100
"""After this number of looks without a new commit the watch is idle: about half a second."""
QUIET_POLLS: Final = 800
"""After this number it is quiet, which is after about twelve seconds."""


class Admission(Enum):
    """The permission of the relay to start."""

    ADMITTED = auto()
    UNREACHABLE = auto()
    """A server does not answer: there is nothing to do, and the relay itself is well."""
    REFUSED = auto()
    """A server setting makes every guarantee void: no heartbeat, which raises an alarm."""


class DrivenRelay(Protocol):
    """The relay of one shard, as its thread drives it."""

    def run_once(self) -> RelayRound:
        """Continue until a rest is due; never rests itself."""

    def close(self) -> object:
        """Store the progress and release the shard."""


class RelayThreads:
    """The relay's threads, started and stopped together."""

    def __init__(
        self,
        shards: Sequence[int],
        open_relay: Callable[[int], DrivenRelay],
        watch: PostgresCommitWatch,
        clock: Clock,
        admit: Callable[[], Admission],
    ) -> None:
        self._open_relay = open_relay
        self._watch = watch
        self._clock = clock
        self._admit = admit
        self._stop = threading.Event()
        self._wake = {shard: threading.Event() for shard in shards}
        self._used: set[int] = set()
        """The shards that have published."""
        self._resting: set[int] = set()
        """The shards that a new commit would wake."""
        self._rested = threading.Event()
        """A used shard has begun to rest."""
        self._progress = {shard: clock.monotonic() for shard in shards}
        shuffled = secrets.SystemRandom().sample(list(shards), len(shards))
        self._threads = [
            threading.Thread(
                target=self._run, args=(rank, shard), name=f"relay-{shard}", daemon=True
            )
            for rank, shard in enumerate(shuffled)
        ]
        self._threads.append(
            threading.Thread(target=self._watch_commits, name="relay-watch", daemon=True)
        )
        self._doorkeeper = threading.Thread(
            target=self._start_when_admitted, name="relay-admission", daemon=True
        )
        self._log = get_logger()

    def start(self) -> None:
        """Start every thread as soon as the servers answer and are safe."""
        self._doorkeeper.start()

    def stop(self) -> None:
        """Ask every thread to end after its round, and wait for a bounded time."""
        self._stop.set()
        self._rested.set()
        self._wake_all(self._wake)
        deadline = self._clock.monotonic() + JOIN_SECONDS
        for thread in (self._doorkeeper, *self._threads):
            if thread.is_alive():
                thread.join(max(0.0, deadline - self._clock.monotonic()))

    def silent_seconds(self) -> float:
        """Return the longest time for which a shard made no round, or failed in each (s)."""
        return self._clock.monotonic() - min(self._progress.values())

    def _start_when_admitted(self) -> None:
        while (admission := self._admit()) is not Admission.ADMITTED:
            if admission is Admission.UNREACHABLE:
                self._count_all_alive()
            if self._stop.wait(ADMISSION_SECONDS):
                return
        self._count_all_alive()
        for thread in self._threads:
            thread.start()

    def _count_all_alive(self) -> None:
        self._progress = dict.fromkeys(self._progress, self._clock.monotonic())

    def _run(self, rank: int, shard: int) -> None:
        self._stop.wait(rank * STAGGER_SECONDS)
        while not self._stop.is_set():
            try:
                self._relay(shard)
            except Exception as error:
                self._log.exception(
                    Event.STEP_FAILED, task="relay", shard=shard, error=type(error).__name__
                )
                self._stop.wait(PAUSE_SECONDS)

    def _relay(self, shard: int) -> None:
        """Drive a shard's relay until the process stops."""
        relay, wake = self._open_relay(shard), self._wake[shard]
        try:
            while not self._stop.is_set():
                wake.clear()
                done = relay.run_once()
                if not done.failed:
                    self._progress[shard] = self._clock.monotonic()
                if done.published:
                    self._used.add(shard)
                if done.rest_seconds and not self._stop.is_set():
                    self._rest(shard, done)
        finally:
            relay.close()

    def _rest(self, shard: int, order: RelayRound) -> None:
        if not order.until_commits:
            self._stop.wait(order.rest_seconds)
            return
        self._resting.add(shard)
        if shard in self._used:
            self._rested.set()
        self._wake[shard].wait(order.rest_seconds)
        self._resting.discard(shard)

    def _watch_commits(self) -> None:
        """Wake the relays of shards with new final commits; otherwise they poll once per second."""
        quiet = 0
        while not self._stop.is_set():
            self._rested.clear()
            try:
                fresh = self._watch.fresh_shards()
            except DatabaseUnavailable:
                self._stop.wait(PAUSE_SECONDS)
                continue
            self._wake_all(fresh & self._wake.keys())
            quiet = 0 if fresh else quiet + 1
            self._wait_for_next_look(quiet)
        self._watch.close()

    def _wait_for_next_look(self, quiet: int) -> None:
        if self._used.isdisjoint(self._resting) and self._used:
            self._rested.wait(WATCH_IDLE_SECONDS)
        else:
            self._stop.wait(_pause(quiet))

    def _wake_all(self, shards: Iterable[int]) -> None:
        for shard in shards:
            self._wake[shard].set()


def _pause(quiet: int) -> float:
    """Return the pause before the next look (s), after a number of looks without a commit."""
    if quiet < IDLE_POLLS:
        return WATCH_BUSY_SECONDS
    return WATCH_IDLE_SECONDS if quiet < QUIET_POLLS else WATCH_QUIET_SECONDS
