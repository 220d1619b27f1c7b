"""A small document of a comparison, with one round."""

from __future__ import annotations

from typing import Any

from benchmarks.comparison.plan import Row
from benchmarks.comparison.results import OURS, RELEASE, medians

SERVERS = ("api", "postgres", "checker", "kafka", "client")
ROCKETMQ = "RocketMQ 5.5.0"


def path_row(subject: str, path: str, cpu_us: float, per_second: float, number: int = 0) -> Row:
    """Return a measurement of a path over HTTP; each process uses a fifth of the CPU time."""
    return {
        "subject": subject,
        "path": path,
        "round": number,
        "acked_per_second": per_second,
        "through_per_second": per_second,
        "cpu_us": dict.fromkeys(SERVERS, cpu_us / len(SERVERS)),
        "wal_bytes": 600.0,
        "transactions_per_second": 60.0,
        "p50_ms": 1.0,
        "p99_ms": 2.0,
    }


def document_of(rows: list[Row]) -> dict[str, Any]:
    """Return the document that holds these measurements."""
    return {
        "command": "make bench",
        "rounds": 1,
        "seconds": 60,
        "machine": {"cores": 2, "processor": "x", "memory_gb": 8, "kernel": "6", "fsync_ms": 1.0},
        "load": [0.1, 2.0],
        "others_cpu_percent": 0,
        "versions": {"kafka": "4.2.1"},
        "settings": {"values": "256 bytes"},
        "code_version": "abc",
        "release": "0123456789abcdef",
        "medians": medians(rows),
        "rows": rows,
    }


def usual_document() -> dict[str, Any]:
    """Return one with both trees and RocketMQ."""
    return document_of(
        [
            path_row(OURS, "batch 500 x 4", 50.0, 31_000.0),
            path_row(RELEASE, "batch 500 x 4", 100.0, 15_000.0),
            path_row(OURS, "single x 64", 660.0, 3_000.0),
            path_row(ROCKETMQ, "its client x 64", 70.0, 10_000.0),
        ]
    )
