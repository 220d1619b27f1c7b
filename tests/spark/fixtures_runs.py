"""Assembles a run over one test installation, as the wiring does for a real one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyspark.sql import SparkSession

from outbox.clock import SystemClock
from outbox.kafka.log_reader import KafkaLogReader
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.reconciliation.source import PostgresSource
from spark.compare import bucket_checksums
from spark.cut.sources import Sources
from spark.jvm.kafka_options import kafka_options
from spark.progress import Progress
from spark.report.report import Report
from spark.run_context import Options, RunContext


class Stores(Protocol):
    """The addresses of an installation."""

    @property
    def database_url(self) -> str:
        """Its database."""

    @property
    def bootstrap_servers(self) -> str:
        """Its Kafka."""

    @property
    def progress_topic(self) -> str:
        """Its topic of manifests."""


def make_parts(session: SparkSession, writer: Stores) -> RunContext:
    """Return everything a run over that installation needs."""
    source = PostgresSource(writer.database_url)
    clock = SystemClock()
    sources = Sources(
        spark_session=session,
        kafka_options=kafka_options(writer.bootstrap_servers, {}),
        jdbc=source.jdbc,
    )
    return RunContext(
        source=source,
        log_reader=KafkaLogReader(writer.bootstrap_servers),
        run_store=PostgresRunStore(writer.database_url),
        sources=lambda: sources,
        clock=clock,
        progress=Progress(stream=StringIO(), clock=clock),
        pause=lambda seconds: None,
    )


def make_options(writer: Stores, folder: Path, **fields: Any) -> Options:
    """Return options with a grace that nothing in a test outlives."""
    defaults: dict[str, Any] = {
        "progress_topic": writer.progress_topic,
        "report_dir": folder / "reports",
        "stage_uri": (folder / "stage").as_uri(),
        "grace_seconds": 3600,
    }
    return Options(**{**defaults, **fields})


def shown(report: Report) -> Mapping[str, Any]:
    """Return all that a run reports and leaves; two runs of one state agree in it.

    Each counts the partitions of a topic for the first time, and notes when.
    """
    assert report.checkpoint is not None
    cut = report.checkpoint.cut
    counted = {name: (n, batches) for name, (n, _, batches) in cut["log"]["counted"].items()}
    return {
        "findings": sorted((each.as_json() for each in report.findings), key=str),
        "counts": report.counts,
        "causes": report.cause_counts,
        "read": report.read,
        "log": {**cut["log"], "counted": counted},
        "left": [cut[name] for name in ("marks", "newest", "ahead")],
        "positions": report.checkpoint.positions,
    }


@contextmanager
def comparing_buckets() -> Iterator[None]:
    """Compare buckets first, as only a large run does of itself, however many of them differ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_checksums, "FROM_RECORDS", 0)
        patch.setattr(bucket_checksums, "MOST_DIRTY", 1.0)
        yield
