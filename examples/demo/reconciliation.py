"""The reconciliation: Spark reads both stores and compares them, in a separate process."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.invocation.dev_state import DevState
from cli.service.programs import script
from devservers.child import Child, Command

RUN_SECONDS = 300.0
REPORT = "*/report.json"
WITH_REPORT = (0, 7, 8)
"""Exit codes of runs with a report: clean, findings, inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of `outbox reconcile run`."""

    clean: bool
    verdict: str
    sentence: str
    html: str


class ReconcileFailed(Exception):
    """`outbox reconcile run` gave no result."""


def reconcile(dev: DevState, reports: Path, log: Path) -> RunResult:
    """Run the reconciliation and read its report; raises ``ReconcileFailed``."""
    folder = reports.resolve()
    before = set(folder.glob(REPORT))
    child = Child(_command(dev, folder, log))
    try:
        if not child.ends_within(RUN_SECONDS):
            raise ReconcileFailed(f"reconcile takes more than {RUN_SECONDS:.0f} s")
    finally:
        exit_code = child.stop()
    written = set(folder.glob(REPORT)) - before
    if exit_code not in WITH_REPORT or len(written) != 1:
        raise ReconcileFailed(f"reconcile exited {exit_code}: {child.last_words()}")
    return _read(written.pop(), exit_code)


def _command(dev: DevState, folder: Path, log: Path) -> Command:
    arguments = [script("outbox"), "reconcile", "run", "--report", str(folder)]
    stores = {
        "OUTBOX_DATABASE_URL": dev.database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": dev.kafka_bootstrap_servers,
    }
    environment = {**os.environ, **stores}
    return Command(name="reconcile", arguments=arguments, log=log, environment=environment)


def _read(report: Path, exit_code: int) -> RunResult:
    summary: dict[str, Any] = json.loads(report.read_text())
    return RunResult(
        clean=exit_code == 0 and summary["verdict"] == "clean",
        verdict=summary["verdict"],
        sentence=summary["sentence"],
        html=summary["report"]["html"],
    )
