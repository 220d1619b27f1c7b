"""One child process in its own session: started, stopped with a signal, never left running.

The child dies with the thread that started it, even if that thread is killed. So start a child from
a thread that lives as long as the child.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from devservers.errors import ServerFailed
from devservers.unprivileged import RunAs

PARENT_DEATH_EXEC = Path(__file__).with_name("parent_death_exec.py")
CLEAN_ENVIRONMENT: Mapping[str, str] = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": "/usr/bin:/bin"}
POLL_SECONDS = 0.02
LOG_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start and stop a child; without a log it shares this process's output."""

    name: str
    arguments: Sequence[str]
    log: Path | None
    environment: Mapping[str, str] | None = None
    run_as: RunAs | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL
    stop_seconds: float = 10.0
    pass_fds: Sequence[int] = ()
    folder: Path = Path("/")


class Child:
    """A running process with its log in `command.log`."""

    def __init__(self, command: Command) -> None:
        """Start the process; an `environment` of None inherits this process's."""
        self.command = command
        with ExitStack() as opened:
            log = opened.enter_context(command.log.open("ab")) if command.log else None
            self._process = subprocess.Popen(
                _parent_death_command(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=None if log is None else subprocess.STDOUT,
                cwd=command.folder,
                env=command.environment,
                start_new_session=True,
                pass_fds=command.pass_fds,
            )

    @property
    def pid(self) -> int:
        """Process id; `parent_death_exec` is replaced by the program, so the id stays the same."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code (negative: a signal), None while it runs; reaps it."""
        return self._process.poll()

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return when `ready()` is true.

        Raises ServerFailed if the process ends first or is not ready within `seconds`.
        """
        deadline = monotonic() + seconds
        while not ready():
            if self.ends_within(POLL_SECONDS):
                ended = f"ended during its start (exit code {self.exit_code()})"
                raise ServerFailed(f"{self.command.name} {ended}: {self.last_words()}")
            if monotonic() > deadline:
                late = f"{self.command.name} does not answer after {seconds:.0f} s"
                raise ServerFailed(f"{late}: see {self.command.log}")

    def signal_stop(self) -> None:
        """Ask it to stop, without waiting."""
        if self._process.poll() is None:
            self._process.send_signal(self.command.stop_signal)

    def stop(self) -> int:
        """Stop it within `stop_seconds`, then kill it; return its exit code."""
        self.signal_stop()
        if not self.ends_within(self.command.stop_seconds):
            self.kill()
        return self._process.wait()

    def kill(self) -> int:
        """Kill it and its children (SIGKILL to its session); return its exit code."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def last_words(self) -> str:
        """Return the last line of its log."""
        if self.command.log is None:
            return "see above"
        with self.command.log.open("rb") as log:
            log.seek(max(0, self.command.log.stat().st_size - LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"

    def ends_within(self, seconds: float) -> bool:
        """Wait at most `seconds` for its end; return whether it ended."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def run_to_end(command: Command, seconds: float) -> None:
    """Run a program that ends without a signal.

    Raises ServerFailed with its last line if it fails or takes longer than `seconds`.
    """
    child = Child(command)
    if not child.ends_within(seconds):
        child.kill()
        raise ServerFailed(f"{command.name} takes over {seconds:.0f} s: see {command.log}")
    if child.exit_code() != 0:
        raise ServerFailed(f"{command.name} failed: {child.last_words()}")


def _parent_death_command(command: Command) -> list[str]:
    user = command.run_as or RunAs(uid=-1, gid=-1)
    facts = (os.getpid(), int(command.orphan_signal), user.uid, user.gid)
    return [
        sys.executable,
        "-I",
        "-S",
        str(PARENT_DEATH_EXEC),
        *map(str, facts),
        *command.arguments,
    ]
