"""One thread a shard for the relay, and one that wakes them when commits have become final.

Several processes share the shards: each thread asks for its lock and waits for it, in an order of
the process's own, so that processes that start together get about as many each. None starts before
the servers' settings have been found safe.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Final, Protocol

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.relay.ports import CommitWatch
from outbox.telemetry.events import Event, get_logger

PAUSE_SECONDS: Final = 1.0
"""A relay that raised is opened anew after this long; an unreachable watch asks again."""
ADMISSION_SECONDS: Final = 2.0
"""Pause between two looks at servers that are away or unsafe."""
JOIN_SECONDS: Final = 8.0
STAGGER_SECONDS: Final = 0.025
WATCH_BUSY_SECONDS: Final = 0.003
WATCH_IDLE_SECONDS: Final = 0.015
IDLE_LOOKS: Final = 100
"""So many looks without a new commit make the watch idle."""


class Admission(Enum):
    """May the relay start?"""

    ADMITTED = auto()
    AWAY = auto()
    """A server does not answer: there is nothing to do, and nothing wrong with the relay."""
    REFUSED = auto()
    """A server is set up so that no promise holds: the relay stays silent, which alarms."""


class Rest(Protocol):
    """What a round says of the rest after it."""

    @property
    def rest_seconds(self) -> float:
        """How long to rest."""

    @property
    def until_commits(self) -> bool:
        """A new commit in the shard ends the rest."""


class Relay(Protocol):
    """What a thread drives: the relay of one shard."""

    def run_once(self) -> Rest:
        """Go on until there is something to rest for; never rests itself."""

    def close(self) -> object:
        """Store what is known and give the shard back."""


class RelayThreads:
    """The relay's threads, started and stopped together."""

    def __init__(
        self,
        shards: Sequence[int],
        open_relay: Callable[[int], Relay],
        watch: CommitWatch,
        clock: Clock,
        admit: Callable[[], Admission],
    ) -> None:
        self._open_relay = open_relay
        self._watch = watch
        self._clock = clock
        self._admit = admit
        self._stop = threading.Event()
        self._wake = {shard: threading.Event() for shard in shards}
        self._progress = {shard: clock.monotonic() for shard in shards}
        in_turn = secrets.SystemRandom().sample(list(shards), len(shards))
        self._threads = [
            threading.Thread(
                target=self._run, args=(rank, shard), name=f"relay-{shard}", daemon=True
            )
            for rank, shard in enumerate(in_turn)
        ]
        self._threads.append(
            threading.Thread(target=self._look_out, name="relay-watch", daemon=True)
        )
        self._doorkeeper = threading.Thread(
            target=self._start_admitted, name="relay-admission", daemon=True
        )
        self._log = get_logger()

    def start(self) -> None:
        """Start every thread as soon as the servers are there and safe."""
        self._doorkeeper.start()

    def stop(self) -> None:
        """Ask every thread to end after its round and wait for them, for a bounded time."""
        self._stop.set()
        self._wake_all(self._wake)
        deadline = self._clock.monotonic() + JOIN_SECONDS
        for thread in (self._doorkeeper, *self._threads):
            if thread.is_alive():
                thread.join(max(0.0, deadline - self._clock.monotonic()))

    def silent_seconds(self) -> float:
        """Return how long the quietest shard has made no round."""
        return self._clock.monotonic() - min(self._progress.values())

    def _start_admitted(self) -> None:
        while (admission := self._admit()) is not Admission.ADMITTED:
            if admission is Admission.AWAY:
                self._all_well()
            if self._stop.wait(ADMISSION_SECONDS):
                return
        self._all_well()
        for thread in self._threads:
            thread.start()

    def _all_well(self) -> None:
        self._progress = dict.fromkeys(self._progress, self._clock.monotonic())

    def _run(self, rank: int, shard: int) -> None:
        self._stop.wait(rank * STAGGER_SECONDS)
        while not self._stop.is_set():
            try:
                self._relay(shard)
            except Exception as error:
                self._log.exception(
                    Event.STOPPED, chore="relay", shard=shard, error=type(error).__name__
                )
                self._stop.wait(PAUSE_SECONDS)

    def _relay(self, shard: int) -> None:
        """Drive a shard's relay until told to stop."""
        relay, wake = self._open_relay(shard), self._wake[shard]
        try:
            while not self._stop.is_set():
                wake.clear()
                done = relay.run_once()
                self._progress[shard] = self._clock.monotonic()
                if done.rest_seconds and not self._stop.is_set():
                    (wake if done.until_commits else self._stop).wait(done.rest_seconds)
        finally:
            relay.close()

    def _look_out(self) -> None:
        """Wake the relays of shards with new final commits; without it they look once a second."""
        quiet = 0
        while not self._stop.is_set():
            try:
                fresh = self._watch.fresh_shards()
            except DatabaseUnavailable:
                self._stop.wait(PAUSE_SECONDS)
                continue
            self._wake_all(fresh & self._wake.keys())
            quiet = 0 if fresh else quiet + 1
            self._stop.wait(WATCH_BUSY_SECONDS if quiet < IDLE_LOOKS else WATCH_IDLE_SECONDS)
        self._watch.close()

    def _wake_all(self, shards: Iterable[int]) -> None:
        for shard in shards:
            self._wake[shard].set()
