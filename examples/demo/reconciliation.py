"""The last word: Spark reads both stores and judges, in a process of its own."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.dev.state_file import DevState
from cli.programs import script

RUN_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What `outbox reconcile run` said."""

    clean: bool
    verdict: str
    sentence: str
    totals: dict[str, int]
    html: str


class ReconcileFailed(Exception):
    """`outbox reconcile run` came to no judgement."""


def reconcile(dev: DevState, reports: Path, topic: str) -> Judgement:
    """Run the reconciliation of ``topic`` and read its summary; raises ``ReconcileFailed``."""
    arguments = [script("outbox"), "-o", "json", "reconcile", "run"]
    arguments += ["--topic", topic, "--report", str(reports)]
    stores = {
        "OUTBOX_DATABASE_URL": dev.database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": dev.kafka_bootstrap_servers,
    }
    run = subprocess.run(
        arguments,
        env={**os.environ, **stores},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    try:
        summary: dict[str, Any] = json.loads(run.stdout)
    except ValueError as error:
        words = (run.stderr.strip() or run.stdout.strip()).splitlines()
        last = words[-1] if words else "without a word"
        raise ReconcileFailed(f"reconcile exited {run.returncode}: {last}") from error
    return Judgement(
        clean=run.returncode == 0 and summary["verdict"] == "clean",
        verdict=summary["verdict"],
        sentence=summary["sentence"],
        totals=summary["totals"],
        html=summary["report"]["html"],
    )
