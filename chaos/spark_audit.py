"""A second opinion: the product's own audit of both stores at the end of a run."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final

from chaos.programs import SCRIPTS
from devservers.child import CLEAN_ENVIRONMENT
from outbox.settings.environment import process_environment

SECONDS: Final = 1800.0
JUDGED: Final = frozenset({0, 7, 8})
"""Exit codes of an audit with a verdict."""
INFORMATION: Final = "info"
"""The severity that does not affect the verdict."""
INHERITED: Final = ("PATH", "HOME", "JAVA_HOME")


def spark_audit(run: Path, database_url: str, bootstrap: str) -> dict[str, Any]:
    """Audit both stores, which must still run; return verdict and findings by cause.

    Spark writes into the run's ``spark`` folder. An audit without a verdict has the verdict
    ``none``, which proves nothing.
    """
    folder = run / "spark"
    folder.mkdir()
    with (folder / "stderr.log").open("w") as errors:
        done = subprocess.run(
            [SCRIPTS / "outbox-reconcile", "run", "--report", folder, "-o", "json"],
            env=_environment(database_url, bootstrap),
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=SECONDS,
            check=False,
        )
    if done.returncode not in JUDGED:
        return {"verdict": "none", "sentence": (folder / "stderr.log").read_text()[-500:]}
    report = json.loads(done.stdout)
    causes = Counter(
        f"{each['class']}/{each['detail']}"
        for each in report["findings"]
        if each["severity"] != INFORMATION
    )
    return {**{name: report[name] for name in ("verdict", "sentence")}, "causes": dict(causes)}


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
