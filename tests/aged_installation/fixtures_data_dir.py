"""The data directory of an ``outbox dev`` that has lived: both servers are aged first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from cli.dev.stack import DATABASE
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic
from tests.aged_installation.fixtures_broker_traits import RETENTION_CHECKS, aged_broker
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_log_starts import log_starts_above_zero
from tests.aged_installation.fixtures_template import aged_database
from tests.aged_installation.fixtures_xids import pass_2_32_xids


def age_data_dir(data_dir: Path) -> None:
    """Create the servers' folders with an aged database and broker; stop what did it."""
    data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
    with _aged_later(data_dir / "kafka"):
        _age_postgres(data_dir / "postgres")


@contextmanager
def _aged_later(folder: Path) -> Iterator[None]:
    """Start a broker for the block, since a start takes seconds, and let it live after that."""
    server = EmbeddedKafka(folder, settings=RETENTION_CHECKS)
    server.launch()
    try:
        yield
        server.wait_ready()
        aged_broker(server.bootstrap_servers)
        ensure_progress_topic(server.bootstrap_servers, replication=1)
        log_starts_above_zero(server.bootstrap_servers, [PROGRESS_TOPIC])
    finally:
        server.stop()


def _age_postgres(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    server.start()
    try:
        pass_2_32_xids(server)
        with psycopg.connect(server.database_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        aged_database(Life(database_url=server.url_of(DATABASE)))
    finally:
        server.stop()
