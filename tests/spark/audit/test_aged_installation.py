"""Ingest, relay, retention and audit of an installation that has lived for long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.message_id import SHARDS, Shard
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.installation_admin import rebase_installation
from spark.audit.audit import Audit
from spark.findings.verdict import Verdict
from tests.aged_installation.fixtures_life import DAY, LEAF_XIDS, Life
from tests.aged_installation.fixtures_log_starts import log_starts_above_zero
from tests.aged_installation.fixtures_xids import pass_2_32_xids
from tests.fixtures_databases import migrate
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_runs import make_options, make_parts

pytestmark = [*REAL_STORES, pytest.mark.deep]

IN_DEFAULT_LEAF = "SELECT count(*) FROM outbox.half_message_default WHERE half_id >> 35 = %s"
LEAF = "SELECT outbox.watermark() >> 20"
ALONE = """
SELECT count(*) = 0 FROM pg_stat_activity
WHERE datname = current_database() AND starts_with(application_name, 'outbox-')
"""
SAVED = "SELECT count(*) FROM outbox.parked_message WHERE half_id = ANY (%s)"


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """Yield an installation on a server whose xids are past 2^32."""
    server = EmbeddedPostgres(tmp_path / "postgres")
    server.start()
    try:
        pass_2_32_xids(server)
        with psycopg.connect(server.database_url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE aged")
        migrate(server.url_of("aged"))
        yield Life(database_url=server.url_of("aged"))
    finally:
        server.stop()
        server.erase()


@pytest.fixture
def world(life: Life, kafka_broker: EmbeddedKafka) -> Iterator[RelayWorld]:
    """Yield its relays and its topics; that of the data starts above 0."""
    servers = kafka_broker.bootstrap_servers
    topics = make_topic(servers, partitions=1), make_topic(servers, partitions=SHARDS)
    log_starts_above_zero(servers, topics[:1])
    with psycopg.connect(life.database_url, autocommit=True) as connection:
        world = RelayWorld(life.database_url, servers, *topics, connection)
        yield world
        for relay in world.opened:
            relay.close()


def publish(world: RelayWorld) -> None:
    """Let a relay of each shard publish what is committed."""
    for shard in range(SHARDS):
        relay = world.builder().open(Shard(shard))
        drain(relay)
        relay.close()


def prepared(life: Life, world: RelayWorld, *values: bytes) -> list[HalfMessage]:
    """Prepare a message for each value."""
    halves = life.prepare(world.topic, *values)
    assert len(halves) == len(values)
    return halves


def test_an_installation_that_has_lived_stores_publishes_retires_and_is_audited(
    life: Life, world: RelayWorld, session: SparkSession, tmp_path: Path
) -> None:
    old = prepared(life, world, *(f"old-{n}".encode() for n in range(12)))
    life.end(old[:8], Resolution.COMMIT)
    life.end(old[8:10], Resolution.ROLLBACK)
    life.park(old[10:])
    publish(world)

    life.pass_leaves(2, ahead=2)
    life.pass_time(30 * DAY)
    life.sweep()
    prepared(life, world, b"undecided")
    assert life.retire() != []
    assert life.rows(SAVED, [half.half_id for half in old[10:]]) == [(2,)]

    life.execute("UPDATE outbox.installation SET base = base - %s", 2 * LEAF_XIDS)
    action = OperatorAction(operator="aged", reason="restored elsewhere", key_id=None)
    wait_for(lambda: life.rows(ALONE) == [(True,)])  # a closed session ends a moment later
    rebased = rebase_installation(life.database_url, action)
    assert rebased.now > rebased.was

    life.pass_leaves(9, ahead=0)
    late = prepared(life, world, *(f"late-{n}".encode() for n in range(6)))
    life.end(late[:5], Resolution.COMMIT)
    [(leaf,)] = life.rows(LEAF)
    assert life.rows(IN_DEFAULT_LEAF, leaf) == [(6,)]
    publish(world)
    life.execute("SELECT outbox.create_leaves(2)")
    assert life.rows(IN_DEFAULT_LEAF, leaf) == [(0,)]

    report = Audit(make_parts(session, world), make_options(world, tmp_path)).run()
    assert report.verdict is Verdict.CLEAN
    assert sorted(filter(None, world.values(13))) == sorted(
        [half.message.value or b"" for half in (*old[:8], *late[:5])]
    )
