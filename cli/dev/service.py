"""What the supervisor watches: anything that can be started, looked at and stopped."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from devservers.child import Child, Command


class Service(Protocol):
    """One child; `launch` is called again after it has died."""

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""

    def launch(self) -> None:
        """Start it without waiting for it to be ready."""

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs or before its start; reaps it."""

    def signal_stop(self) -> None:
        """Ask it to stop, without waiting."""

    def stop(self) -> None:
        """Ask it to stop and wait; by force in the end."""


class Program:
    """One of our own programs as a service."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path | None
    ) -> None:
        """Prepare the program; its output goes to `log`, or where ours goes."""
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
        """Return how it ended, None while it runs."""
        return self._child.exit_code() if self._child else None

    def last_words(self) -> str:
        """Return the last line of its log."""
        return self._child.last_words() if self._child else ""

    def signal_stop(self) -> None:
        """Send SIGTERM."""
        if self._child is not None:
            self._child.signal_stop()

    def stop(self) -> None:
        """Send SIGTERM and wait; SIGKILL in the end."""
        if self._child is not None:
            self._child.stop()
            self._child = None
