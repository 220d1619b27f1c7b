"""A zygote: a warm process from which the programs are forked; run with ``python -m``.

It has imported the programs' modules and has no thread, no event loop and no handle of Kafka. So a
fork is equal to a new interpreter and costs milliseconds. It reads one JSON command per line and
answers each with one line. Its children end with it, and it ends with its stdin.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PRELOADED = (
    "api.__main__",
    "checker.__main__",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "encodings.idna",
)


def main() -> None:
    """Serve until stdin closes."""
    for module in PRELOADED:
        importlib.import_module(module)
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run_command(json.loads(line))) + "\n")
        sys.stdout.flush()


def _run_command(asked: dict[str, Any]) -> dict[str, Any]:
    match asked["do"]:
        case "start":
            return {"pid": _start(asked["program"], asked["environment"], Path(asked["log"]))}
        case "kill":
            os.kill(asked["pid"], signal.SIGKILL)
            return {"code": _code(asked["pid"], 0)}
        case _:
            return {"code": _code(asked["pid"], os.WNOHANG)}


def _code(pid: int, options: int) -> int | None:
    """Return a child's exit code, None while it runs; waits for it without WNOHANG."""
    ended, status = os.waitpid(pid, options)
    return os.waitstatus_to_exitcode(status) if ended else None


def _start(program: str, environment: dict[str, str], log: Path) -> int:
    pid = os.fork()
    if pid == 0:
        _run_program(program, environment, log)
    return pid


def _run_program(program: str, environment: dict[str, str], log: Path) -> None:
    """Turn a new fork into the program; never returns."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _redirect(log)
        os.environ.clear()  # noqa: TID251
        os.environ.update(environment)  # noqa: TID251
        random.seed()
        code = importlib.import_module(f"{program}.__main__").main([])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _redirect(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, target in enumerate((nothing, output, output)):
        os.dup2(target, number)


if __name__ == "__main__":
    main()
