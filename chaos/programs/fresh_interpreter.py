"""Runs a program in a new interpreter: ``python -m chaos.programs.fresh_interpreter M:F``.

A library cannot be preloaded (LD_PRELOAD) into a fork of the zygote.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.programs.got_patch import rebind

SHARED_MEMORY: Final = ("sem.faketime_sem_{pid}", "faketime_shm_{pid}")
"""libfaketime creates these by name when it is loaded, and they remain after SIGKILL."""


def main() -> int:
    """Run the program; its name becomes the first argument."""
    program, sys.argv = sys.argv[1], sys.argv[2:]
    for name in SHARED_MEMORY:
        with suppress(OSError):
            (Path("/dev/shm") / name.format(pid=os.getpid())).unlink()
    importlib.import_module("confluent_kafka")  # loads librdkafka
    wait = ctypes.cast(ctypes.CDLL(None).pthread_cond_timedwait, ctypes.c_void_p).value
    rebind("librdkafka", "cnd_timedwait", wait or 0)
    module, _, function = program.partition(":")
    return int(getattr(importlib.import_module(module), function)() or 0)


if __name__ == "__main__":
    sys.exit(main())
