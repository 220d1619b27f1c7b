"""The Parquet tables that all runs share; each run adds a folder to each of them, and changes none.

A folder appears when it is complete, after the run has been stored. That of `runs` comes last, so
a run that is in it has all its rows in the other tables. No engine takes the name of a folder for a
number or a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from spark.columns.parquet_folder import ParquetFolder
from spark.columns.schemas import TIME
from spark.findings.finding_class import Kind, Place
from spark.report.report import Report
from spark.report.topic_counts import COLUMNS, rows_by

FOLDER: Final = "tables"
"""Below the folder of the reports."""
COMMON: Final = {"schema_version": pa.int32(), "run_id": pa.string(), "cut_at": TIME}

TOPICS: Final = pa.schema(
    {
        **COMMON,
        **dict.fromkeys(Place._fields, pa.string()),
        **dict.fromkeys(COLUMNS, pa.int64()),
    }
)
"""What a run counted: a row per topic and producer group, null if they are not known."""

RUNS: Final = pa.schema(
    {
        **COMMON,
        **dict.fromkeys(("previous_run_id", "mode", "full_because", "verdict"), pa.string()),
        "started_at": TIME,
        **dict.fromkeys(("duration_seconds", "coverage_ratio"), pa.float64()),
        **dict.fromkeys(("committed", "records", "in_flight"), pa.int64()),
        **dict.fromkeys((f"{kind}_findings" for kind in Kind), pa.int64()),
    }
)
"""One row per run; the findings are the open ones above info, by kind."""


def add_run(report: Report, known: Mapping[str, Any]) -> None:
    """Add a run to the tables, once the ledger has written its findings. Raises OSError.

    ``known`` has the values of its JSON and of its row in the database, and more than the columns.
    """
    found = {f"{kind}_findings": n for kind, n in report.totals.items()}
    run = {**known, **known["checked"], **found, "coverage_ratio": report.coverage_ratio}
    topics = [{**known, **each} for each in rows_by(report.by_place, *Place._fields)]
    _write(report.folder / "topics", topics, TOPICS)
    _write(report.folder / "runs", [run], RUNS)
    name = f"run={report.plan.snapshot.taken_at:%Y%m%dT%H%M%SZ}-{report.run_id}"
    for table in ("findings", "topics", "runs"):
        folder = report.folder.parent / FOLDER / table
        folder.mkdir(parents=True, exist_ok=True)
        (report.folder / table).rename(folder / name)


def _write(folder: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    ParquetFolder.emptied(folder).add(rows, schema)
