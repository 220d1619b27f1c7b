"""The second opinion counts every finding of the audit, also those that its JSON leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from chaos.run.spark_audit import opinion_of
from spark.columns.parquet_folder import ParquetFolder

SHOWN = 2


def report(folder: Path, *classes: str, listed: int | None = None) -> dict[str, Any]:
    """Return a report of these findings, the first of which its JSON shows."""
    path = folder / "findings"
    rows = [
        {"class": name, "severity": "info" if name == "PARKED" else "high"}
        for name in classes[:listed]
    ]
    ParquetFolder.emptied(path).add(pa.Table.from_pylist(rows))
    shown = [{"class": name} for name in classes[:SHOWN]]
    return {
        "verdict": "findings",
        "sentence": "so it is",
        "checked": {"committed": 9, "records": 9},
        "counts": {},
        "totals": {},
        "findings": shown,
        "findings_omitted": len(classes) - len(shown),
        "report": {"parquet": str(path)},
    }


def test_a_finding_behind_the_last_that_the_json_shows_is_counted(tmp_path: Path) -> None:
    found = opinion_of(report(tmp_path, *["PG_REGRESSION"] * 3, "STUCK", "PARKED"))
    assert found["classes"] == {"PG_REGRESSION": 3, "STUCK": 1}


def test_an_audit_that_does_not_list_every_finding_proves_nothing(tmp_path: Path) -> None:
    found = opinion_of(report(tmp_path, *["PG_REGRESSION"] * 5, listed=4))
    assert found == {"verdict": "none", "sentence": "4 of 5 findings are listed"}
