"""Identifies the tested code."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from typing import Any, Final

import confluent_kafka

from devservers.artifacts import PROJECT_ROOT, kafka_version, postgres_jar

JUDGED: Final = ("outbox", "checker", "api", "migrations")
PARTS: Final = ("confluent-kafka", "psycopg", "uvicorn", "uvloop", "aiohttp", "fastapi", "msgspec")


def code_version() -> str:
    """Return a hash of the tested code as it lies here: equal files have it, committed or not."""
    found = hashlib.sha256()
    for path in sorted(each for part in JUDGED for each in (PROJECT_ROOT / part).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"{path.relative_to(PROJECT_ROOT)} {content}\n".encode())
    return found.hexdigest()[:16]


def versions(kafka: str = "") -> dict[str, Any]:
    """Return the versions of servers and libraries; ``kafka``: another release than the usual."""
    return {
        "python": platform.python_version(),
        "kafka": kafka_version(kafka),
        "postgresql": postgres_jar().stem.rpartition("-")[2],
        "librdkafka": confluent_kafka.libversion()[0],
        **{part: version(part) for part in PARTS},
    }
