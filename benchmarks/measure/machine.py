"""Prints results with the machine, the versions and the load."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import psycopg

WRITES: Final = 200


def facts() -> dict[str, Any]:
    """Return the machine and the versions on which a result depends."""
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "psycopg": psycopg.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
        "load_1m": round(os.getloadavg()[0], 2),
    }


def hardware() -> dict[str, Any]:
    """Return what else decides about rates: the processor, the memory, a durable write."""
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor[1] if processor else "unknown",
        "memory_gb": round(memory / 2**30),
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


def busy_seconds() -> tuple[float, float]:
    """Return the CPU seconds that all processes have used, and those that other machines took."""
    user, nice, system, _, _, irq, softirq, stolen, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    second = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / second, stolen / second


REPORTED: list[dict[str, Any]] = []
"""Everything that this process has reported."""


def report(question: str, **figures: Any) -> None:
    """Print one result as one line of JSON."""
    REPORTED.append({"benchmark": question, **figures})
    print(json.dumps(REPORTED[-1]), flush=True)


def start(question: str, **settings: Any) -> None:
    """Print the first line of a series of results."""
    report(question, settings=settings, **facts())
    sys.stdout.flush()
