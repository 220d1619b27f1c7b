"""Measures one audit of an installation from beginning to end: `outbox-reconcile`, with its JVM."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.measure.cpu_time import cpu_seconds
from outbox.settings.environment import process_environment

COMMAND: Final = Path(sys.executable).parent / "outbox-reconcile"
LOOK_SECONDS: Final = 0.2
JUDGED: Final = frozenset({0, 7, 8})
"""Exit codes of an audit with a verdict."""


def audit(running: dict[str, Any]) -> dict[str, Any]:
    """Audit everything and return records, seconds, CPU seconds and the verdict.

    ``running`` is the installation's dev.json. Raises SystemExit without a verdict.
    """
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as folder:
        answer = Path(folder) / "answer.json"
        began = time.monotonic()
        with answer.open("wb") as output:
            process = subprocess.Popen(
                [COMMAND, "run", "--full", "--report", folder, "-o", "json"],
                env={**process_environment(), **_addresses(running)},
                stdout=output,
            )
        cpu = _cpu_until_end(process)
        if process.returncode not in JUDGED:
            raise SystemExit(f"the audit ended with {process.returncode}")
        found = json.loads(answer.read_text())
    seconds, records = time.monotonic() - began, found["checked"]["records"]
    return {
        "records": records,
        "seconds": round(seconds, 1),
        "cpu_us": round(cpu / records * 1e6),
        "verdict": found["verdict"],
    }


def _cpu_until_end(process: subprocess.Popen[bytes]) -> float:
    """Return the CPU seconds of a process tree, read while it runs: it leaves its JVM behind."""
    used = 0.0
    while process.poll() is None:
        used = max(used, cpu_seconds(process.pid))
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    return used


def _addresses(running: dict[str, Any]) -> dict[str, str]:
    return {
        "OUTBOX_DATABASE_URL": running["database_url"],
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": running["kafka_bootstrap_servers"],
        "OUTBOX_RECONCILE_GRACE_SECONDS": "0",
    }
