"""One thread a shard for the relay: the only threads of the process, started and stopped here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from outbox.clock import Clock
from outbox.message_id import Shard
from outbox.telemetry import Event, get_logger

PAUSE_SECONDS: Final = 1.0
"""A relay that raised is opened anew after this long."""
JOIN_SECONDS: Final = 8.0


class ShardRelay(Protocol):
    """What a thread drives: the relay of one shard."""

    def run_once(self) -> float:
        """Do one bounded step; return the seconds until the next."""

    def close(self) -> None:
        """Give the shard back in good order."""


class RelayThreads:
    """The relay's threads. ``wake`` of a shard's relay is the event that also ends its rests."""

    def __init__(
        self,
        shards: Sequence[Shard],
        open_relay: Callable[[Shard, threading.Event], ShardRelay],
        clock: Clock,
    ) -> None:
        self._open_relay = open_relay
        self._clock = clock
        self._stop = threading.Event()
        self._progress = {shard: clock.monotonic() for shard in shards}
        self._threads = [
            threading.Thread(target=self._run, args=(shard,), name=f"relay-{shard}", daemon=True)
            for shard in shards
        ]
        self._log = get_logger()

    def start(self) -> None:
        """Start every thread."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask every thread to end after its step and wait for them, for a bounded time."""
        self._stop.set()
        deadline = self._clock.monotonic() + JOIN_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - self._clock.monotonic()))

    def silent_seconds(self) -> float:
        """Return how long the quietest shard has made no step."""
        return self._clock.monotonic() - min(self._progress.values())

    def _run(self, shard: Shard) -> None:
        while not self._stop.is_set():
            try:
                self._relay(shard)
            except Exception as error:
                self._log.exception(
                    Event.STOPPED, chore="relay", shard=shard, error=type(error).__name__
                )
                self._stop.wait(PAUSE_SECONDS)

    def _relay(self, shard: Shard) -> None:
        """Drive a shard's relay until told to stop."""
        relay = self._open_relay(shard, self._stop)
        try:
            while not self._stop.is_set():
                pause = relay.run_once()
                self._progress[shard] = self._clock.monotonic()
                if pause > 0:
                    self._stop.wait(pause)
        finally:
            relay.close()
