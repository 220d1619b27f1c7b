"""The process that forks all programs of a run; it has imported their modules once.

Run as ``python -m chaos.programs.zygote FD``. It has no thread, no event loop and no Kafka handle,
so a fork is equivalent to a new interpreter and costs milliseconds. Requests and reports are JSON
packets on the inherited socket. Signals are sent from here, where the children are reaped, so a
signal never reaches another process with the reused number of a dead child. Children die with it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

PACKET: Final = 1 << 16
PR_SET_PDEATHSIG: Final = 1
PRELOADED: Final = (
    "api.__main__",
    "api.wiring",
    "checker.__main__",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "encodings.idna",
    "chaos.workload.client",
    "chaos.workload.endpoint",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A request to start a child: program, whole environment, log file."""

    name: str
    program: str
    """``module:function``, called with no argument"""
    environment: dict[str, str]
    log: str


def main() -> None:
    """Serve until the harness closes the socket."""
    server = socket.socket(fileno=int(sys.argv[1]))
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    Zygote(server).serve()


class Zygote:
    """Forks children, signals them, reports their ends."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._names: dict[int, str] = {}
        self._asked: dict[int, str] = {}
        self._wake, self._waker = socket.socketpair()
        for end in (self._wake, self._waker):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Follow requests until the other end is closed; then kill every child."""
        self._report(event="ready")
        while True:
            readable, _, _ = select.select([self._server, self._wake], [], [])
            if self._wake in readable:
                self._wake.recv(4096)
            self._reap()
            if self._server in readable and not self._follow(self._server.recv(PACKET)):
                break
        for pid in self._names:
            os.kill(pid, signal.SIGKILL)

    def _follow(self, packet: bytes) -> bool:
        if not packet:
            return False
        request = json.loads(packet)
        match request.pop("do"):
            case "start":
                self._start(Start(**request))
            case "signal":
                self._signal(request["pid"], request["number"], request["why"])
        return True

    def _start(self, start: Start) -> None:
        pid = os.fork()
        if pid == 0:
            _become(start, (self._server, self._wake, self._waker))
        self._names[pid] = start.name
        self._report(event="started", name=start.name, pid=pid)

    def _signal(self, pid: int, number: int, why: str) -> None:
        if pid in self._names:
            if number == signal.SIGKILL:
                self._asked.setdefault(pid, why)
            os.kill(pid, number)

    def _reap(self) -> None:
        while self._names:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            name, why = self._names.pop(pid), self._asked.pop(pid, None)
            self._report(event="ended", name=name, pid=pid, code=code, why=why)

    def _report(self, **facts: Any) -> None:
        self._server.send(json.dumps({"t": time.monotonic(), **facts}).encode())


def _become(start: Start, inherited: tuple[socket.socket, ...]) -> None:
    """Turn a fresh fork into the program; never returns."""
    code = 1
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for end in inherited:
            end.close()
        _redirect(start.log)
        os.environ.clear()
        os.environ.update(start.environment)
        sys.argv = [start.name]
        random.seed()
        code = _run(start.program)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _redirect(log: str) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.close(nothing)


def _run(program: str) -> int:
    if "LD_PRELOAD" in os.environ:
        os.execv(
            sys.executable,
            [sys.executable, "-m", "chaos.programs.fresh_interpreter", program, *sys.argv],
        )
    module, _, function = program.partition(":")
    return int(getattr(importlib.import_module(module), function)() or 0)


if __name__ == "__main__":
    main()
