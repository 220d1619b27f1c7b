"""One SparkSession for the whole suite: starting it costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from spark.jvm.session import RUNTIME_JARS, SessionSettings, spark_session
from spark.run_context import Options, RunContext
from tests.fixtures_databases import drop_database, make_database
from tests.fixtures_separate_broker import separate_broker
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options, make_parts

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
    """An installation with topics of its own, and without findings of a former life."""
    return OutboxWriter(database_url, kafka_broker.bootstrap_servers, f"spark-{next(_NUMBERS)}")


@pytest.fixture(scope="module")
def module_writer(
    postgres_server: EmbeddedPostgres, template_database: str, kafka_broker: EmbeddedKafka
) -> Iterator[OutboxWriter]:
    """An installation that the tests of one module only read."""
    url = make_database(postgres_server.database_url, template_database)
    yield OutboxWriter(url, kafka_broker.bootstrap_servers, f"spark-{next(_NUMBERS)}")
    drop_database(postgres_server.database_url, url)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker whose progress topic no other test has written to."""
    with separate_broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def parts(session: SparkSession, writer: OutboxWriter) -> RunContext:
    """Everything a run over that installation needs."""
    return make_parts(session, writer)


@pytest.fixture
def options(writer: OutboxWriter, tmp_path: Path) -> Options:
    """Options with a grace that nothing in a test outlives."""
    return make_options(writer, tmp_path)
