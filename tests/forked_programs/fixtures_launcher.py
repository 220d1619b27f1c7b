"""Stands for a program that a zygote forks: its streams, its signals, its exit code.

Run as a file, with nothing of the project to import: ``ADDRESS PROGRAM NAME ARGUMENTS…``.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    """Ask for the fork, pass signals on to it, and end as it ends."""
    address, program, name, *arguments = sys.argv[1:]
    asked = {
        "program": program,
        "name": name,
        "arguments": arguments,
        "environment": dict(os.environ),  # noqa: TID251
        "folder": os.getcwd(),  # noqa: PTH109
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as zygote:
        zygote.connect(address)
        socket.send_fds(zygote, [json.dumps(asked).encode()], [0, 1, 2])
        pid = int(zygote.recv(32))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda given, _: os.kill(pid, given))
        for stream in (0, 1, 2):
            os.close(stream)
        end_as(int(zygote.recv(32)))


def end_as(code: int) -> None:
    """End with an exit code, or by a signal if it is negative."""
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
