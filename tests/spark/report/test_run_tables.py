"""Each table of the runs is one table, whoever reads it and whoever has written a file of it."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from jinja2 import Template
from pyspark.sql import SparkSession

from spark.columns.schemas import FINDINGS
from spark.findings.ledger import Ledger
from spark.report.document import document
from spark.report.run_tables import RUNS, TOPICS, add_run
from spark.report.store_run import stored_run
from tests.spark.fixtures_markers import ON_SPARK
from tests.unit.docs.reference.test_reconciliation_page import PAGE
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_report

pytestmark = ON_SPARK

LOSS = (
    *("hex(id) AS finding_id", "'LOST' AS class", "'published' AS detail"),
    *("'points' AS topic", "'shop' AS producer_group"),
    "TIMESTAMP '2026-01-01 12:00:03Z' AS decided_at",
)


def query_of_the_page(tables: Path) -> str:
    """Return the dbt test of the page, as dbt fills it in."""
    (text,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    (files,) = re.findall(r"external_location: \"(.*)\"", PAGE)
    files = files.replace("/srv/reports/tables", str(tables))
    return str(Template(text).render(source=lambda _, name: files.format(name=name)))


def test_spark_duckdb_and_pandas_read_all_runs_as_one_table(
    session: SparkSession, tmp_path: Path
) -> None:
    """The first run's id looks like a number; Spark wrote some findings of the second one."""
    import duckdb
    import pandas as pd

    for run_id, losses in {"1234567890123456": 0, "00000000000000aa": 3}.items():
        folder = tmp_path / f"run_id={run_id}"
        ledger = Ledger(run_id=run_id, folder=folder / "findings")
        ledger.enter([make_finding(1, decided_at=NOON), make_finding(2, producer_group="shop")])
        ledger.enter_losses(session.range(losses).selectExpr(*LOSS))
        report = make_report(run_id=run_id, folder=folder, cause_counts=ledger.counts)
        add_run(report, {**document(report, {}), **stored_run(report, {}).row})
    for name, schema, key, rows in (
        ("findings", FINDINGS, "finding_id", 7),
        ("topics", TOPICS, "producer_group", 4),
        ("runs", RUNS, "verdict", 2),
    ):
        table = tmp_path / "tables" / name
        read = (
            session.read.parquet(str(table)).toArrow(),
            duckdb.read_parquet(f"{table}/*/*.parquet").to_arrow_table(),
            pa.Table.from_pandas(pd.read_parquet(table)),
        )
        by = [("run_id", "ascending"), (key, "ascending")]
        one, *others = (each.select(schema.names).cast(schema).sort_by(by) for each in read)
        assert (one.num_rows, others) == (rows, [one, one])
    failed = duckdb.execute(query_of_the_page(tmp_path / "tables")).fetchall()
    assert len(failed) == 2  # messages of a group and of none
