"""A standby is read in place of its primary: it lags, and no finding comes of that."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from pyspark.sql import SparkSession

from chaos.servers.nodes import PostgresNode
from chaos.servers.postgres_copies import copy_running
from chaos.servers.server_thread import ServerThread
from chaos.servers.standby import PrimaryAndStandby
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.errors import DatabaseUnavailable
from outbox.messages.message import Resolution
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.standby import await_replay
from spark.audit.audit import Audit
from spark.findings.verdict import Verdict
from tests.fixtures_databases import migrate
from tests.fixtures_waiting import wait_for
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options, make_parts

pytestmark = [*REAL_STORES, pytest.mark.deep]

Sessions = tuple[psycopg.Connection, psycopg.Connection]
"""On the primary, and on the standby."""
REPLAYED = "SELECT pg_last_wal_replay_lsn()::text"
WRITTEN = "SELECT pg_current_wal_lsn()::text"


@dataclass(frozen=True, kw_only=True)
class Installation:
    """A primary, its standby, and an outbox on it."""

    pair: PrimaryAndStandby
    keeper: ServerThread
    home: Path
    writer: OutboxWriter

    @property
    def replica_url(self) -> str:
        """The standby as the reconciliation's role sees it."""
        parts = urlsplit(self.pair.standby.dsn())
        return parts._replace(netloc=f"auditor:a@{parts.hostname}:{parts.port}").geturl()

    def lag(self) -> None:
        """Let the standby replay nothing more."""
        with psycopg.connect(self.pair.standby.dsn(), autocommit=True) as standby:
            standby.execute("SELECT pg_wal_replay_pause()")
            paused = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
            wait_for(lambda: standby.execute(paused).fetchone() == (True,))

    def catch_up(self) -> None:
        """Let the standby go on."""
        with psycopg.connect(self.pair.standby.dsn(), autocommit=True) as standby:
            standby.execute("SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, kafka_broker: EmbeddedKafka
) -> Iterator[Installation]:
    """Yield a running pair and a topic."""
    home, keeper = tmp_path_factory.mktemp("replica"), ServerThread()
    pair = PrimaryAndStandby(PostgresNode(home / "primary", keeper), home / "standby", keeper)
    try:
        pair.primary.start()
        pair.primary.make_database()
        url = pair.primary.dsn()
        migrate(url)
        writer = OutboxWriter(url, kafka_broker.bootstrap_servers, "replica")
        writer.create_topics("replica-points")
        writer.execute("CREATE ROLE auditor LOGIN PASSWORD 'a' IN ROLE outbox_reconcile")
        pair.follow()
        yield Installation(pair=pair, keeper=keeper, home=home, writer=writer)
    finally:
        for node in (pair.primary, pair.standby):
            node.server.kill()
            node.server.erase()
        keeper.close()


@pytest.fixture
def sessions(installation: Installation) -> Iterator[Sessions]:
    """A session on the primary and one on the standby, which goes on after the test."""
    with (
        psycopg.connect(installation.pair.primary.dsn(), autocommit=True) as primary,
        psycopg.connect(installation.pair.standby.dsn(), autocommit=True) as standby,
    ):
        yield primary, standby
    installation.catch_up()


COMMITS = "SELECT coalesce(sum(cardinality(half_ids)), 0) FROM outbox.reconciliation_commits"
WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'outbox-reconcile' AND query LIKE '%pg_last_wal_replay_lsn%'"""


def test_a_run_waits_for_a_replica_that_lags_and_finds_nothing(
    installation: Installation, sessions: Sessions, session: SparkSession, tmp_path: Path
) -> None:
    writer, (primary, standby) = installation.writer, sessions
    installation.lag()
    writer.end(writer.prepare("replica-points", 12), Resolution.COMMIT)
    writer.publish()
    assert [one(each, COMMITS) for each in (primary, standby)] == [12, 0]
    source = PostgresSource(writer.database_url, installation.replica_url)
    parts = make_parts(session, writer)
    sources = replace(parts.sources(), jdbc=source.jdbc)
    parts = replace(parts, source=source, sources=lambda: sources)
    with ThreadPoolExecutor(1) as executor:
        run = executor.submit(Audit(parts, make_options(writer, tmp_path)).run)
        wait_for(lambda: one(standby, WAITING) or run.done())
        installation.catch_up()
        report = run.result()
    assert (report.verdict, report.findings) == (Verdict.CLEAN, ())
    assert (report.counts.judged, report.counts.records) == (12, 12)


def test_a_replica_that_does_not_catch_up_is_said_with_both_places(
    installation: Installation, sessions: Sessions
) -> None:
    primary, standby = sessions
    installation.lag()
    primary.execute("CREATE TABLE public.more ()")
    there, wanted = one(standby, REPLAYED), one(primary, WRITTEN)
    with pytest.raises(
        DatabaseUnavailable, match=f"after 0 s .* up to {there}, not up to {wanted}"
    ):
        await_replay(primary, standby, seconds=0)


def test_a_server_that_follows_nobody_or_another_installation_is_no_replica(
    sessions: Sessions, postgres_server: EmbeddedPostgres
) -> None:
    primary, standby = sessions
    with pytest.raises(DatabaseUnavailable, match="not a standby"):
        await_replay(primary, primary)
    with (
        psycopg.connect(postgres_server.database_url) as stranger,
        pytest.raises(DatabaseUnavailable, match="system identifier"),
    ):
        await_replay(stranger, standby)


def test_a_replica_of_a_history_that_its_primary_has_lost_is_refused(
    installation: Installation, sessions: Sessions
) -> None:
    _, standby = sessions
    restored = PostgresNode(installation.home / "restored", installation.keeper)
    copy_running(installation.pair.primary, restored)
    with psycopg.connect(installation.pair.primary.dsn(), autocommit=True) as primary:
        primary.execute("CREATE TABLE public.lost AS SELECT n FROM generate_series(1, 500000) n")
        await_replay(primary, standby)
    try:
        restored.start()
        with (
            psycopg.connect(restored.dsn(), autocommit=True) as primary,
            pytest.raises(DatabaseUnavailable, match="another history"),
        ):
            await_replay(primary, standby)
    finally:
        restored.server.kill()
        restored.server.erase()


def one(connection: psycopg.Connection, query: str) -> object:
    """Return the only value of a query."""
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
