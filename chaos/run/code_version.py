"""Identifies the tested code: only runs of one code version may be added up."""

from __future__ import annotations

import hashlib
import platform
import subprocess
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


def git_commit() -> str:
    """Return the commit that is checked out; empty if the tested code differs from it."""
    return "" if _git("status", "--porcelain", "--", *JUDGED) else _git("rev-parse", "HEAD")


def commit_words(commit: str) -> str:
    """Return what a page says about the commit of its code."""
    return f"commit `{commit[:12]}`" if commit else "not committed"


def versions(kafka: str = "") -> dict[str, Any]:
    """Return the versions of servers and libraries; ``kafka``: another release than the usual."""
    return {
        "python": platform.python_version(),
        "kafka": kafka_version(kafka),
        "postgresql": postgres_jar().stem.rpartition("-")[2],
        "librdkafka": confluent_kafka.libversion()[0],
        **{part: version(part) for part in PARTS},
    }


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PROJECT_ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
