"""Keeps the services running: restarts a service that ended, the first time at once.

A service that ends again and again is restarted after growing pauses, to protect the machine.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from time import monotonic
from typing import NoReturn

from cli.dev.service import Service
from cli.dev.signals import StopRequested
from devservers.errors import EmbeddedError

LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 10.0


class Supervisor:
    """Watches a fixed set of services."""

    def __init__(
        self,
        services: Mapping[str, Service],
        *,
        changed: Callable[[], object],
        say: Callable[[str], None],
    ) -> None:
        """Watch `services`; `changed` is called after each restart."""
        self._services = services
        self._changed = changed
        self._say = say
        self._pauses = {name: RestartPause() for name in services}

    def watch_once(self) -> int:
        """Restart the ended services whose pause is over; return their number."""
        now = monotonic()
        started = [name for name in self._services if self._revive(name, now)]
        if started:
            self._changed()
        return len(started)

    def watch(self) -> NoReturn:
        """Watch until StopRequested is raised."""
        while True:
            self.watch_once()
            Event().wait(LOOK_SECONDS)

    def _revive(self, name: str, now: float) -> bool:
        service, pause = self._services[name], self._pauses[name]
        code = service.exit_code()
        if code is None or not pause.over(now):
            return False
        self._say(f"{name} ended ({describe_exit(code)}); restarting it")
        pause.began(now)
        try:
            service.launch()
        except EmbeddedError as error:
            self._say(f"{name}: {error}")
        return True


class RestartPause:
    """How long to wait before the next start of one service."""

    def __init__(self) -> None:
        """Begin without a pause."""
        self._started_at = float("-inf")
        self._seconds = 0.0

    def over(self, now: float) -> bool:
        """Return whether the service may start at `now` (monotonic seconds)."""
        return now - self._started_at >= self._seconds

    def began(self, now: float) -> None:
        """Record a start at `now`: the pause grows unless the last life was long enough."""
        steady = now - self._started_at > STEADY_SECONDS
        doubled = max(FIRST_PAUSE_SECONDS, self._seconds * 2)
        self._seconds = FIRST_PAUSE_SECONDS if steady else min(doubled, LONGEST_PAUSE_SECONDS)
        self._started_at = now


def stop_all(waves: Sequence[Sequence[Service]]) -> None:
    """Stop the services wave by wave; after a second signal the kernel ends the rest."""
    with suppress(StopRequested):
        for wave in waves:
            for service in wave:
                service.signal_stop()
            for service in wave:
                service.stop()


def describe_exit(code: int) -> str:
    """Return an exit code as text."""
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
