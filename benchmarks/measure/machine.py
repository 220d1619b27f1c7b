"""Prints results, and the machine on which they depend."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

WRITES: Final = 200


def facts() -> dict[str, Any]:
    """Return the processor, the memory, the kernel, and the time of a durable write."""
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "processor": processor[1] if processor else "unknown",
        "memory_gb": round(memory / 2**30),
        "kernel": platform.release(),
        "fsync_ms": round(durable_write_seconds() * 1000, 2),
    }


def durable_write_seconds() -> float:
    """Return the median time of a durable write of 8 KiB into a temporary file."""
    taken = []
    with tempfile.TemporaryFile() as file:
        for _ in range(WRITES):
            began = time.perf_counter()
            file.write(bytes(8192))
            file.flush()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def report(what: str, **figures: Any) -> None:
    """Print one result as one line of JSON."""
    print(json.dumps({"benchmark": what, **figures}), flush=True)
