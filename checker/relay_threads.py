"""One thread a shard for the relay, and one that wakes those whose shard has new commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event as Flag
from threading import Thread
from typing import Final, Protocol

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.relay_ports import CommitWatch
from outbox.telemetry import Event, get_logger

PAUSE_SECONDS: Final = 1.0
"""A relay that raised is opened anew after this long; so is a lost watch."""
WATCH_SECONDS: Final = (0.003, 0.025)
"""How often the watch asks: right after a commit, and at least, when there are none."""
JOIN_SECONDS: Final = 8.0


class Rested(Protocol):
    """What a relay's step says of the rest after it."""

    @property
    def rest_seconds(self) -> float:
        """How long to rest."""

    @property
    def until_commits(self) -> bool:
        """A new commit in the shard ends the rest."""


class Relay(Protocol):
    """What a thread drives: the relay of one shard."""

    def run_once(self) -> Rested:
        """Do one bounded step; never rests itself."""

    def close(self) -> object:
        """Store what is known and give the shard back."""


class RelayThreads:
    """The relay's threads: started and stopped here, and nowhere else are there any."""

    def __init__(
        self,
        shards: Sequence[int],
        open_relay: Callable[[int], Relay],
        watch: CommitWatch,
        clock: Clock,
    ) -> None:
        self._open_relay = open_relay
        self._watch = watch
        self._clock = clock
        self._stop = Flag()
        self._commits = {shard: Flag() for shard in shards}
        self._progress = {shard: clock.monotonic() for shard in shards}
        self._threads = [
            Thread(target=self._run, args=(shard,), name=f"relay-{shard}", daemon=True)
            for shard in shards
        ]
        self._threads.append(Thread(target=self._run_watch, name="relay-watch", daemon=True))
        self._log = get_logger()

    def start(self) -> None:
        """Start every thread."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask every thread to end after its step and wait for them, for a bounded time."""
        self._stop.set()
        for commits in self._commits.values():
            commits.set()
        deadline = self._clock.monotonic() + JOIN_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - self._clock.monotonic()))

    def silent_seconds(self) -> float:
        """Return how long the quietest shard has made no step."""
        return self._clock.monotonic() - min(self._progress.values())

    # -- A shard's thread ------------------------------------------------------------------------

    def _run(self, shard: int) -> None:
        while not self._stop.is_set():
            try:
                self._drive(shard)
            except Exception as error:
                self._log.exception(
                    Event.STOPPED, chore="relay", shard=shard, error=type(error).__name__
                )
                self._stop.wait(PAUSE_SECONDS)

    def _drive(self, shard: int) -> None:
        """Drive a shard's relay until told to stop. The flag is lowered before each step, so a
        commit that comes during it is not slept through.
        """
        relay, commits = self._open_relay(shard), self._commits[shard]
        try:
            while not self._stop.is_set():
                commits.clear()
                step = relay.run_once()
                self._progress[shard] = self._clock.monotonic()
                if step.rest_seconds > 0 and not self._stop.is_set():
                    rest = commits if step.until_commits else self._stop
                    rest.wait(step.rest_seconds)
        finally:
            relay.close()

    # -- The watch's thread ----------------------------------------------------------------------

    def _run_watch(self) -> None:
        soon, late = WATCH_SECONDS
        pause = soon
        while not self._stop.wait(pause):
            try:
                fresh = self._watch.fresh_shards()
            except DatabaseUnavailable:
                pause = PAUSE_SECONDS
                continue
            for shard in fresh & self._commits.keys():
                self._commits[shard].set()
            pause = soon if fresh else min(2 * pause, late)
        self._watch.close()
