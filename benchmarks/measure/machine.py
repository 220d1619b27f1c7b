"""Prints results with the machine, the versions and the load."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

import confluent_kafka
import psycopg


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
