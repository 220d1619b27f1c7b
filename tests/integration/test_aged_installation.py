"""The builder of aged installations: each trait is really there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.log_reader import KafkaLogReader
from outbox.reconciliation.log import LogEnd
from tests.aged_installation.fixtures_aged import aged
from tests.aged_installation.fixtures_database_traits import rows_in_the_default_leaf
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_log_starts import EXPIRED
from tests.aged_installation.fixtures_run_traits import RUNS
from tests.aged_installation.fixtures_template import aged_database
from tests.aged_installation.fixtures_xids import pass_2_32_xids
from tests.fixtures_databases import drop_database, make_database

pytestmark = pytest.mark.postgres

XID = "SELECT pg_current_xact_id()::text::bigint"
LEAVES = """
SELECT array_agg(substring(relname FROM '[0-9]+$')::bigint - (outbox.watermark() >> 20) ORDER BY 1)
FROM pg_class WHERE relname ~ '^half_message_[0-9]+$'
"""
FACTS = {
    "committed": "SELECT count(*) FROM outbox.commit_log"
    " WHERE xid < outbox.watermark() >> 20 << 20",
    "overdue": "SELECT count(*) FROM outbox.check_queue q JOIN outbox.producer_group g"
    " ON g.id = q.producer_group_id WHERE g.paused AND q.due_at < now() - interval '4 days'",
    "parked": "SELECT count(*) FROM outbox.parked_message"
    " WHERE parked_at < now() - interval '9 days'",
    "deleted": "SELECT count(*) FROM outbox.producer_group WHERE deleted_at IS NOT NULL",
    "runs": "SELECT count(*) FROM outbox.reconciliation_run",
    "statuses": "SELECT count(DISTINCT status) FROM outbox.reconciliation_finding",
    "held": "SELECT count(*) FROM outbox.held_record"
    " JOIN outbox.half_message_default USING (half_id) WHERE released_at IS NULL",
    "given up": "SELECT count(*) FROM outbox.held_record WHERE dropped_at IS NOT NULL",
    "recovered": "SELECT count(*) FROM outbox.already_published",
    "rebased": "SELECT count(*) FROM outbox.audit_log WHERE action = 'installation.rebase'",
    "retired": "SELECT count(*) FROM outbox.retired_leaf",
    "relays": "SELECT count(*) FROM outbox.progress WHERE name LIKE 'relay:%%' AND position > 0",
}


@pytest.fixture
def life(postgres_server: EmbeddedPostgres) -> Iterator[Life]:
    """Yield an empty database."""
    url = make_database(postgres_server.database_url, None)
    yield Life(database_url=url)
    drop_database(postgres_server.database_url, url)


@pytest.mark.parametrize("binaries", [None, Path("/usr/lib/postgresql/15/bin")], ids=["18", "15"])
def test_the_xids_of_a_server_pass_2_32_and_stay_there_after_a_crash(
    tmp_path: Path, binaries: Path | None
) -> None:
    if binaries is not None and not binaries.is_dir():
        pytest.skip(f"no PostgreSQL in {binaries}")
    server = EmbeddedPostgres(tmp_path / "postgres", binaries=binaries)
    server.start()
    try:
        pass_2_32_xids(server, times=3)
        with psycopg.connect(server.database_url) as connection:
            before = connection.execute(XID).fetchone()
        server.kill()
        server.start()
        with psycopg.connect(server.database_url) as connection:
            after = connection.execute(XID).fetchone()
    finally:
        server.stop()
        server.erase()
    assert before is not None
    assert after is not None
    assert 3 << 32 < before[0] <= after[0] < 4 << 32


def test_an_aged_database_has_every_trait(life: Life) -> None:
    aged_database(life)
    found = {name: life.rows(query)[0][0] for name, query in FACTS.items()}
    committed = found.pop("committed")
    assert committed > 0
    assert found == {
        "overdue": 20,
        "parked": 5,
        "deleted": 1,
        "runs": RUNS,
        "statuses": 5,
        "held": 2,
        "given up": 1,
        "recovered": 3,
        "rebased": 1,
        "retired": 1,
        "relays": 16,
    }
    (leaves,) = life.rows(LEAVES)[0]
    assert leaves[-1] == 0, "a leaf ahead of the current one"
    assert life.rows("SELECT base > 0 FROM outbox.installation") == [(True,)]
    rows_in_the_default_leaf(life)
    assert life.rows("SELECT leaf IS NOT NULL FROM outbox.missing_leaf LIMIT 1") == [(True,)]


@pytest.mark.deep
@pytest.mark.kafka
def test_an_aged_installation_has_lived_on_both_stores(
    life: Life, kafka_broker: EmbeddedKafka
) -> None:
    servers = kafka_broker.bootstrap_servers
    with aged(Life(database_url=life.database_url, bootstrap_servers=servers)) as world:
        log = KafkaLogReader(servers)
        starts = log.offsets(log.partitions([world.topic, world.progress_topic]), LogEnd.START)
        assert min(starts.offsets.values()) >= EXPIRED
        assert world.one("SELECT count(*) FROM outbox.already_published WHERE shard = 3") == 3
        held = "SELECT count(*), count(dropped_at) FROM outbox.held_record WHERE shard = 3"
        assert world.connection.execute(held).fetchone() == (2, 1)
        assert (
            world.one("SELECT count(*) FROM outbox.audit_log WHERE action = 'shard.resolve'") == 2
        )
