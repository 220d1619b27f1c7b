"""Keeps the services running: one that dies is started again, at once the first time.

A service that keeps dying is given growing pauses, so that it cannot take the machine with it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from cli.dev.service import Service
from cli.dev.signals import StopRequested, Wakeup
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
        self._pauses = {name: Pause() for name in services}

    def watch_once(self) -> int:
        """Start what has died and whose pause is over; return how many were started."""
        now = monotonic()
        started = [name for name in self._services if self._revive(name, now)]
        if started:
            self._changed()
        return len(started)

    def watch(self, wakeup: Wakeup, until: Callable[[], bool]) -> None:
        """Go on until `until()` holds; StopRequested ends it too."""
        while not until():
            self.watch_once()
            wakeup.wait(LOOK_SECONDS)

    def _revive(self, name: str, now: float) -> bool:
        service, pause = self._services[name], self._pauses[name]
        code = service.exit_code()
        if code is None or not pause.over(now):
            return False
        self._say(f"{name} ended ({ending(code)}); starting it again")
        pause.began(now)
        try:
            service.launch()
        except EmbeddedError as error:
            self._say(f"{name}: {error}")
        return True


class Pause:
    """How long to wait before the next start of one service."""

    def __init__(self) -> None:
        """Begin with no pause."""
        self._started_at = float("-inf")
        self._seconds = 0.0

    def over(self, now: float) -> bool:
        """Tell whether it may be started at `now` (monotonic seconds)."""
        return now - self._started_at >= self._seconds

    def began(self, now: float) -> None:
        """Note a start at `now`: the pause grows unless the last one held for a while."""
        steady = now - self._started_at > STEADY_SECONDS
        doubled = max(FIRST_PAUSE_SECONDS, self._seconds * 2)
        self._seconds = FIRST_PAUSE_SECONDS if steady else min(doubled, LONGEST_PAUSE_SECONDS)
        self._started_at = now


def stop_all(waves: Sequence[Sequence[Service]]) -> None:
    """Stop the services, wave after wave; a second signal leaves the rest to the kernel."""
    with suppress(StopRequested):
        for wave in waves:
            for service in wave:
                service.signal_stop()
            for service in wave:
                service.stop()


def ending(code: int) -> str:
    """Return an exit code in words."""
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
