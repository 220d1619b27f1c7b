"""The common part of the embedded servers: one child process, started, watched and stopped."""

import shutil
from abc import ABC, abstractmethod
from pathlib import Path

from devservers.child import Child


class Server(ABC):
    """A server as a child process; its data folder remains after its end."""

    def __init__(self, home: Path) -> None:
        """Prepare a server in a folder without starting it."""
        self._home = home
        self._child: Child | None = None

    @abstractmethod
    def launch(self) -> None:
        """Start without waiting; the first start creates the data."""

    @abstractmethod
    def wait_ready(self) -> None:
        """Return once it answers; raise ServerFailed otherwise."""

    @property
    def home(self) -> Path:
        """The folder of data and log: a stand-in if the user cannot enter the given one."""
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
        """Return its exit code, None while it runs."""
        return self._child.exit_code() if self._child else None

    def signal_stop(self) -> None:
        """Ask it to stop, without waiting."""
        if self._child is not None:
            self._child.signal_stop()

    def stop(self) -> None:
        """Stop it in order; its data remains."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def kill(self) -> None:
        """Crash it: SIGKILL to the process and its session."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def erase(self) -> None:
        """Delete the data of a stopped server, also from a stand-in folder."""
        shutil.rmtree(self._home, ignore_errors=True)
