"""What the embedded servers have in common: one child at a time, started, watched and ended."""

import shutil
from abc import ABC, abstractmethod
from pathlib import Path

from devservers.child import Child


class Server(ABC):
    """A server as our child, its data in a folder of ours that stays when it ends."""

    def __init__(self, home: Path) -> None:
        """Prepare a server with a home; starts nothing."""
        self._home = home
        self._child: Child | None = None

    @abstractmethod
    def launch(self) -> None:
        """Start without waiting; makes the data the first time."""

    @abstractmethod
    def wait_ready(self) -> None:
        """Return once it answers; raise ServerFailed otherwise."""

    @property
    def home(self) -> Path:
        """Where data and log are: not in the wanted folder if its user cannot go there."""
        return self._home

    @property
    def pid(self) -> int | None:
        """Process id of the running server."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start and return once it answers.

        Raises ServerFailed, ArtifactsMissing or NotReachable.
        """
        self.launch()
        self.wait_ready()

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._child.exit_code() if self._child else None

    def signal_stop(self) -> None:
        """Ask it to stop, without waiting."""
        if self._child is not None:
            self._child.signal_stop()

    def stop(self) -> None:
        """Stop it in order; what it wrote stays."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def kill(self) -> None:
        """Crash it: SIGKILL to the process and its session."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def erase(self) -> None:
        """Delete the data of a stopped server, wherever they had to be put."""
        shutil.rmtree(self._home, ignore_errors=True)
