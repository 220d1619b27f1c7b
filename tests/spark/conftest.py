"""One SparkSession for the whole suite: starting it costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cli.embedded.kafka import EmbeddedKafka
from outbox.clock import SystemClock
from outbox.publication.log_facts import KafkaLogFacts
from outbox.storage.reconciliation import PostgresRunStore, PostgresSource
from spark.kafka_options import kafka_options
from spark.progress import Progress
from spark.run import Options, Parts
from spark.session import SessionSettings, spark_session
from spark.sources import Sources
from spark.wiring import RUNTIME_JARS
from tests.spark.outbox_writer import OutboxWriter

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The suite's SparkSession."""
    settings = SessionSettings(
        master="local[2]",
        jars_dir=RUNTIME_JARS,
        log_file=tmp_path_factory.mktemp("spark") / "spark.log",
        extra={"spark.sql.shuffle.partitions": "2"},
    )
    with spark_session(settings) as opened:
        yield opened


@pytest.fixture
def writer(database_url: str, kafka_broker: EmbeddedKafka) -> OutboxWriter:
    """An installation with topics of its own."""
    return OutboxWriter(database_url, kafka_broker.bootstrap_servers, f"spark-{next(_NUMBERS)}")


@pytest.fixture
def parts(session: SparkSession, writer: OutboxWriter) -> Parts:
    """Everything a run over that installation needs."""
    source = PostgresSource(writer.database_url)
    clock = SystemClock()
    return Parts(
        source=source,
        log_facts=KafkaLogFacts(writer.bootstrap_servers),
        run_store=PostgresRunStore(writer.database_url),
        sources=Sources(
            spark_session=session,
            kafka_options=kafka_options(writer.bootstrap_servers, {}),
            jdbc=source.jdbc,
        ),
        clock=clock,
        progress=Progress(stream=StringIO(), clock=clock),
        pause=lambda seconds: None,
    )


@pytest.fixture
def options(writer: OutboxWriter, tmp_path: Path) -> Options:
    """Options with a grace that nothing in a test outlives."""
    return Options(
        progress_topic=writer.progress_topic,
        report_dir=tmp_path / "reports",
        stage_uri=(tmp_path / "stage").as_uri(),
        grace_seconds=3600,
        versions={"spark": "4.0.0"},
    )
