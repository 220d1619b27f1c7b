"""A process that has imported the programs, and forks for each run of one; run with ``python -m``.

A new interpreter spends a second of a processor on imports. This one has no thread, no event loop
and no handle of Kafka, so a fork of it is equal to a new interpreter. A launcher asks for each fork
over a socket, with its own standard streams. A fork dies with its launcher, and with this process,
which ends with its input.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

PACKET: Final = 1 << 17
PR_SET_PDEATHSIG: Final = 1
PRELOADED: Final = (
    "api.__main__",
    "api.wiring",
    "checker.__main__",
    "cli.app",
    "cli.program",
    "encodings.idna",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)
Program = Callable[[], Any]


def main() -> None:
    """Serve until the input ends; in a fork, run its program and exit."""
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(sys.argv[1])
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        program = Zygote(server).serve()
    sys.exit(program())


class Zygote:
    """Forks children, and tells the launcher of each how it has ended."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._launchers: dict[socket.socket, int] = {}
        """The child of each launcher that waits."""
        self._ends: dict[int, tuple[int, socket.socket]] = {}
        """A child and its launcher, by what can be read when the child has ended."""

    def serve(self) -> Program:
        """Follow requests until the input ends; return the program of a fork in that fork."""
        while True:
            watched: list[Any] = [0, self._server, *self._launchers, *self._ends]
            readable, _, _ = select.select(watched, [], [])
            if 0 in readable:
                return int
            for launcher in [each for each in self._launchers if each in readable]:
                os.kill(self._launchers.pop(launcher), signal.SIGKILL)
            for end in [each for each in self._ends if each in readable]:
                self._reap(end)
            if self._server in readable:
                program = self._fork()
                if program is not None:
                    return program

    def _reap(self, end: int) -> None:
        pid, launcher = self._ends.pop(end)
        os.close(end)
        _, status = os.waitpid(pid, 0)
        self._launchers.pop(launcher, None)
        with launcher, suppress(BrokenPipeError):
            launcher.send(str(os.waitstatus_to_exitcode(status)).encode())

    def _fork(self) -> Program | None:
        launcher, _ = self._server.accept()
        packet, streams, _, _ = socket.recv_fds(launcher, PACKET, 3)
        pid = os.fork()
        if pid == 0:
            self._close(launcher)
            return become(json.loads(packet), streams)
        for stream in streams:
            os.close(stream)
        self._launchers[launcher] = pid
        self._ends[os.pidfd_open(pid)] = pid, launcher
        launcher.send(str(pid).encode())
        return None

    def _close(self, launcher: socket.socket) -> None:
        """Close in a fork what belongs to the zygote."""
        for _, other in self._ends.values():
            other.close()
        for end in self._ends:
            os.close(end)
        launcher.close()


def become(asked: dict[str, Any], streams: list[int]) -> Program:
    """Give a fork its streams, environment and arguments; return its program."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["folder"])
    os.environ.clear()  # noqa: TID251
    os.environ.update(asked["environment"])  # noqa: TID251
    sys.argv = [asked["name"], *asked["arguments"]]
    module, _, function = asked["program"].partition(":")
    program: Program = getattr(importlib.import_module(module), function)
    return program


if __name__ == "__main__":
    main()
