"""A service that the supervisor can start, watch and stop."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from devservers.child import Child, Command


class Service(Protocol):
    """One child process; `launch` is called again after its end."""

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""

    def launch(self) -> None:
        """Start it without waiting for it to be ready."""

    def exit_code(self) -> int | None:
        """Return its exit code, None while it runs or before its start; reaps it."""

    def signal_stop(self) -> None:
        """Ask it to stop, without waiting."""

    def stop(self) -> None:
        """Ask it to stop and wait; kill it after the time limit."""


class Program:
    """One of the service's programs under the supervisor."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path | None
    ) -> None:
        """Prepare the program; its output goes to `log`, or to this process's output."""
        self._command = Command(name=name, arguments=arguments, log=log, environment=environment)
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._child.pid if self._child else None

    def launch(self) -> None:
        """Start it."""
        self._child = Child(self._command)

    def exit_code(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._child.exit_code() if self._child else None

    def last_words(self) -> str:
        """Return the last line of its log."""
        return self._child.last_words() if self._child else ""

    def signal_stop(self) -> None:
        """Send SIGTERM."""
        if self._child is not None:
            self._child.signal_stop()

    def stop(self) -> None:
        """Send SIGTERM and wait; send SIGKILL after the time limit."""
        if self._child is not None:
            self._child.stop()
            self._child = None
