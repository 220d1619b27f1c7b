"""Identifies the tested code: only runs of one code version may be added up."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from importlib.metadata import version
from typing import Any, Final

import confluent_kafka

from devservers.artifacts import PROJECT_ROOT, RUNTIME

JUDGED: Final = ("outbox", "checker", "api", "migrations")
PARTS: Final = ("confluent-kafka", "psycopg", "uvicorn", "uvloop", "aiohttp", "fastapi", "msgspec")


def code_version() -> str:
    """Return a hash of the tested code, with "+dirty" if it differs from the commit."""
    trees = _git("rev-parse", *(f"HEAD:{part}" for part in JUDGED))
    dirty = "+dirty" if _git("status", "--porcelain", "--", *JUDGED) else ""
    return hashlib.sha256(trees.encode()).hexdigest()[:16] + dirty


def git_commit() -> str:
    """Return the commit that is checked out."""
    return _git("rev-parse", "HEAD")


def versions() -> dict[str, Any]:
    """Return the versions of servers and libraries."""
    return {
        "python": platform.python_version(),
        "kafka": _version_in("kafka/kafka-clients-*.jar"),
        "postgresql": _version_in("postgres/*binaries-linux*.jar"),
        "librdkafka": confluent_kafka.libversion()[0],
        **{part: version(part) for part in PARTS},
    }


def _version_in(pattern: str) -> str:
    """Return the version at the end of an artifact's file name."""
    found = next(RUNTIME.glob(pattern), None)
    return found.stem.rpartition("-")[2] if found else ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PROJECT_ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
