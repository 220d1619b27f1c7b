"""The programs of a run as supervised children: started, killed, paused, restarted.

The zygote forks all of them. A dead child is restarted at once, unless it is held. Every end is
counted with its reason.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from chaos.history.process_ends import ENDED, STOPPED, TOO_SLOW, is_kill
from devservers.child import Child as ServerChild
from devservers.child import Command
from outbox.settings.environment import process_environment

PACKET: Final = 1 << 16
START_SECONDS: Final = 120.0
RESTART_SECONDS: Final = 0.02
"""A killed child is restarted after this time; one that ended by itself after FAILED_SECONDS."""
FAILED_SECONDS: Final = 1.0
STOP_SECONDS: Final = 15.0
OK: Final = 0
"""The exit code of an orderly end. A program that is not ready yet dies of the stop signal, which
counts as orderly too.
"""


Environment = Callable[[int], Mapping[str, str]]
"""Returns the environment of a child's life from the number of that life."""


class ProcessExit(NamedTuple):
    """The end of one life of a child; ``why`` is the fault that killed it, or the stop."""

    name: str
    pid: int
    code: int
    why: str | None


@dataclass(slots=True)
class Child:
    """One supervised program, through all its lives."""

    name: str
    role: str
    program: str
    environment: Environment
    log: Path
    _send: Callable[..., None]
    pid: int | None = None
    port: int = 0
    """port of an API; 0 for other programs"""
    lives: int = 0
    failpoint: str = ""
    """set for the next life only"""
    held: bool = False
    frozen: bool = False
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def kill(self, why: str = "kill") -> int | None:
        """Kill the present life; return its pid, or None without one."""
        pid = self.pid
        self._signal(signal.SIGKILL, why)
        return pid

    def pause(self) -> None:
        """Pause it (SIGSTOP)."""
        self.frozen = True
        self._signal(signal.SIGSTOP, "pause")

    def resume(self) -> None:
        """Resume it (SIGCONT)."""
        self.frozen = False
        self._signal(signal.SIGCONT, "resume")

    def terminate(self) -> None:
        """Ask it to stop (SIGTERM)."""
        self._signal(signal.SIGTERM, "stop")

    def hold(self) -> None:
        """Do not restart it after its death, until ``release``."""
        self.held = True

    def release(self) -> None:
        """Allow restarts again; start it if it is dead."""
        self.held = False
        if self.pid is None:
            self.start()

    def start(self) -> None:
        """Start a new life."""
        self.lives += 1
        self.frozen = False
        self.started.clear()
        self.ended.clear()
        environment = dict(self.environment(self.lives))
        if self.failpoint:
            environment["OUTBOX_FAILPOINTS"], self.failpoint = self.failpoint, ""
        self._send(
            do="start",
            name=self.name,
            program=self.program,
            environment=environment,
            log=str(self.log),
        )

    def wait_started(self, seconds: float) -> bool:
        """Wait until a life has begun; return whether it did."""
        return self.started.wait(seconds)

    def _signal(self, number: int, why: str) -> None:
        if self.pid is not None:
            self._send(do="signal", pid=self.pid, number=int(number), why=why)


class Programs:
    """All children of a run, and the zygote that forks them."""

    def __init__(self, logs: Path, ended: Callable[[Child, ProcessExit], object]) -> None:
        """Start the zygote; ``ended`` is called for every end, from the watching thread."""
        self._logs, self._ended = logs, ended
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._children: dict[str, Child] = {}
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self.ends: Counter[str] = Counter()
        """Ends by role and reason."""
        self._zygote = _start_zygote(theirs, logs / "zygote.log")
        theirs.close()
        self._watcher = threading.Thread(target=self._watch, name="zygote", daemon=True)
        self._watcher.start()

    def of(self, role: str) -> list[Child]:
        """Return the children of a role."""
        return [child for child in self._children.values() if child.role == role]

    def named(self, name: str) -> Child:
        """Return a child; raises KeyError."""
        return self._children[name]

    def add(self, name: str, role: str, program: str, environment: Environment) -> Child:
        """Add a child without starting it."""
        child = Child(name, role, program, environment, self._logs / f"{name}.log", self._send)
        self._children[name] = child
        return child

    def start(self, role: str) -> None:
        """Start all children of a role. Raises TimeoutError if the zygote is not ready."""
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError("the zygote does not answer")
        for child in self.of(role):
            child.start()

    def kills(self) -> int:
        """Return the number of ends by SIGKILL so far."""
        return sum(count for end, count in self.ends.items() if is_kill(end))

    def heal(self) -> None:
        """Resume and restart everything; clear all failpoints."""
        for child in self._children.values():
            child.failpoint = ""
            child.resume()
            if child.held:
                child.release()

    def stop(self, role: str, seconds: float = STOP_SECONDS) -> None:
        """Ask the children of a role to stop and wait; kill them after the time limit."""
        living = [child for child in self.of(role) if child.pid is not None]
        for child in living:
            child.hold()
            child.terminate()
        deadline = monotonic() + seconds
        for child in living:
            if not child.ended.wait(max(0.0, deadline - monotonic())):
                child.kill(TOO_SLOW)
                child.ended.wait(1.0)

    def close(self) -> None:
        """End the zygote and with it every child."""
        self._stopping.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._zygote.kill()
        self._watcher.join(5.0)
        self._socket.close()

    def _send(self, **request: Any) -> None:
        with self._lock, suppress(OSError):
            self._socket.send(json.dumps(request).encode())

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                packet = self._socket.recv(PACKET)
            except OSError:
                return
            if not packet:
                return
            self._on_report(json.loads(packet))

    def _on_report(self, report: dict[str, Any]) -> None:
        match report["event"]:
            case "ready":
                self._ready.set()
            case "started":
                child = self._children[report["name"]]
                child.pid = report["pid"]
                child.started.set()
            case "ended":
                child = self._children[report["name"]]
                child.pid = None
                child.ended.set()
                code = OK if child.held and report["code"] == -signal.SIGTERM else report["code"]
                why = report["why"] or (STOPPED if child.held and code == OK else None)
                self._record_end(child, ProcessExit(child.name, report["pid"], code, why))

    def _record_end(self, child: Child, end: ProcessExit) -> None:
        self.ends[f"{child.role}:{reason_of(end)}"] += 1
        self._ended(child, end)
        if self._stopping.is_set() or child.held:
            return
        pause = RESTART_SECONDS if end.code == -signal.SIGKILL else FAILED_SECONDS
        timer = threading.Timer(pause, self._restart, (child,))
        timer.daemon = True
        timer.start()

    def _restart(self, child: Child) -> None:
        if child.pid is None and not child.held and not self._stopping.is_set():
            child.start()


def reason_of(end: ProcessExit) -> str:
    """Return why a child ended: a fault, the stop, its failpoint, or an exit code."""
    if end.why is not None:
        return end.why
    return "failpoint" if end.code == -signal.SIGKILL else f"{ENDED} {end.code}"


def _start_zygote(theirs: socket.socket, log: Path) -> ServerChild:
    return ServerChild(
        Command(
            name="the zygote",
            arguments=[sys.executable, "-m", "chaos.programs.zygote", str(theirs.fileno())],
            log=log,
            environment=process_environment(),
            pass_fds=[theirs.fileno()],
        )
    )
