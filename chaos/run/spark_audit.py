"""A second opinion: Spark audits the stores at the end of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyarrow import parquet  # type: ignore[import-untyped]

from devservers.child import CLEAN_ENVIRONMENT
from outbox.settings.environment import process_environment

COMMAND: Final = Path(sys.executable).parent / "outbox-reconcile"
SECONDS: Final = 1800.0
JUDGED: Final = frozenset({0, 7, 8})
"""Exit codes of an audit with a verdict."""
KEPT: Final = ("verdict", "sentence", "checked", "counts", "totals", "findings_omitted")
INFORMATION: Final = "info"
"""The severity that does not affect the verdict."""
INHERITED: Final = ("PATH", "HOME", "JAVA_HOME")


def spark_opinion(
    run: Path, database_url: str, bootstrap: str, settings: Mapping[str, str]
) -> dict[str, Any]:
    """Audit both stores, which must still run, and return a summary of the report.

    ``settings`` are those of the programs. Spark writes into the run's ``spark`` folder. An audit
    without a verdict is ``{"verdict": "none", "sentence": why}``, which proves nothing.
    """
    folder = run / "spark"
    folder.mkdir(exist_ok=True)
    with (folder / "stderr.log").open("w") as errors:
        try:
            done = subprocess.run(
                [COMMAND, "run", "--report", str(folder), "-o", "json"],
                env={**settings, **_environment(database_url, bootstrap)},
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return _none(str(error))
    if done.returncode not in JUDGED:
        return _none((folder / "stderr.log").read_text()[-500:])
    return opinion_of(json.loads(done.stdout))


def opinion_of(report: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a report, with the findings of each class.

    The report shows the first thousand, its CSV the worst ten thousand, its Parquet files all. A
    finding that none of them names may be anything, so the audit then proves nothing.
    """
    listed = parquet.read_table(report["report"]["parquet"], columns=["class", "severity"])
    findings = listed.to_pylist()
    made = len(report["findings"]) + report["findings_omitted"]
    if len(findings) < made:
        return _none(f"{len(findings)} of {made} findings are listed")
    counted = Counter(each["class"] for each in findings if each["severity"] != INFORMATION)
    return {**{name: report[name] for name in KEPT}, "classes": dict(counted)}


def _none(why: str) -> dict[str, Any]:
    return {"verdict": "none", "sentence": why}


def _environment(database_url: str, bootstrap: str) -> dict[str, str]:
    """Return Spark's environment, without a grace time: the backlog has drained."""
    given = process_environment()
    return {
        **CLEAN_ENVIRONMENT,
        **{name: given[name] for name in INHERITED if name in given},
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "OUTBOX_RECONCILE_GRACE_SECONDS": "0",
    }
