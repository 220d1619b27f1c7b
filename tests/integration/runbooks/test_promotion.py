"""Runbook `Promote a replica, or recover to a point in time`: PostgreSQL has lost its newest rows.

The cluster is the same, so its transaction ids go on. What Kafka has and PostgreSQL has not is
found by the relay itself, and named.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from chaos.servers.nodes import PostgresNode
from chaos.servers.postgres_copies import add_file, copy_running
from chaos.servers.server_thread import ServerThread
from chaos.servers.standby import PrimaryAndStandby
from checker.maintenance.orphan_names import OrphanNames
from devservers.kafka import EmbeddedKafka
from devservers.unprivileged import unprivileged_user
from outbox.kafka.topic_scan import KafkaTopicScan
from outbox.messages.message_id import SHARDS, Nonce, message_id_text
from outbox.postgres.messages.seen_topics import PostgresSeenTopics
from outbox.postgres.relay.orphans import PostgresOrphans
from outbox.postgres.sessions.connections import make_pool
from outbox.postgres.sessions.verified_sessions import refuse_ids_behind
from outbox.relay.protocol.state import Phase
from tests.fixtures_databases import migrate
from tests.fixtures_kafka import make_topic
from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until
from tests.integration.runbooks.fixtures_orphans import named_orphans
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

Lose = Callable[[], None]
"""Does the work that PostgreSQL then loses."""
RECOVERED = """
restore_command = 'cp {archive}/%f %p'
recovery_target_name = 'before'
recovery_target_action = promote
"""
ARCHIVED = "SELECT last_archived_wal >= %s FROM pg_stat_archiver"


@dataclass(frozen=True)
class Servers:
    """A primary, the folder where it archives its log, and the home of a second node."""

    primary: PostgresNode
    archive: Path
    home: Path
    thread: ServerThread
    others: list[PostgresNode]

    def promote(self, lose: Lose) -> PostgresNode:
        """Promote a standby that has not received the last work."""
        pair = PrimaryAndStandby(self.primary, self.home, self.thread)
        self.others.append(pair.standby)
        pair.follow()
        pair.stop_following()
        lose()
        self.primary.server.kill()
        return pair.promote()

    def recover(self, lose: Lose) -> PostgresNode:
        """Recover from a base backup and the archived log to a point before the last work."""
        other = PostgresNode(self.home, self.thread)
        self.others.append(other)
        copy_running(self.primary, other)
        ask(self.primary, "SELECT pg_create_restore_point('before')")
        lose()
        segment = ask(self.primary, "SELECT pg_walfile_name(pg_switch_wal())")
        until(lambda: ask(self.primary, ARCHIVED, segment) is True)
        self.primary.server.kill()
        settings = RECOVERED.format(archive=self.archive)
        add_file(other.data_dir / "postgresql.auto.conf", settings)
        add_file(other.data_dir / "recovery.signal", "")
        other.start()
        until(lambda: ask(other, "SELECT pg_is_in_recovery()") is False)
        return other


def ask(node: PostgresNode, question: str, *parameters: object) -> Any:
    """Return the first column of the first row."""
    with psycopg.connect(node.dsn(), autocommit=True) as session:
        row = session.execute(question.encode(), parameters).fetchone()
    return row and row[0]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Yield a running primary and room for a second node."""
    thread = ServerThread()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        user = unprivileged_user()
        if user is not None:
            user.take(Path(folder))
        settings = {"archive_mode": "on", "archive_command": f"cp %p {folder}/%f"}
        primary = PostgresNode(tmp_path / "primary", thread, settings=settings)
        made = Servers(primary, Path(folder), tmp_path / "other", thread, [primary])
        try:
            primary.start()
            primary.make_database()
            yield made
        finally:
            for node in made.others:
                node.server.kill()
                node.server.erase()
            thread.close()


@pytest.fixture
def old(servers: Servers, kafka_broker: EmbeddedKafka) -> RelayWorld:
    """Return an installation in the primary; it has published one message of two."""
    url, brokers = servers.primary.dsn(), kafka_broker.bootstrap_servers
    migrate(url)
    topics = make_topic(brokers, partitions=1), make_topic(brokers, partitions=SHARDS)
    world = RelayWorld(url, brokers, *topics, psycopg.connect(url, autocommit=True))
    world.commit_values(b"kept")
    drain(world.relay())
    world.commit_values(b"pending")
    return world


@pytest.mark.parametrize("way", [Servers.promote, Servers.recover])
async def test_what_kafka_has_is_published_once_and_what_is_gone_is_named(
    servers: Servers,
    old: RelayWorld,
    way: Callable[[Servers, Lose], PostgresNode],
) -> None:
    lost: list[str] = []

    def work() -> None:
        (half_id,) = old.commit(replace(old.message(b"lost"), transaction_id="t-1"))
        nonce = old.one("SELECT nonce FROM outbox.half_message WHERE half_id = %s", half_id)
        lost.append(message_id_text(half_id, Nonce(nonce)))
        drain(old.relay_again())
        old.relay_again().close()
        old.connection.close()

    url = way(servers, work).dsn()
    with psycopg.connect(url, autocommit=True) as connection:
        new = replace(old, database_url=url, connection=connection, opened=[])
        refuse_ids_behind(connection)
        new.commit_values(b"new")
        assert drain(new.relay()).phase is Phase.RUN
        new.relay_again().close()
        assert new.values(4) == [b"kept", b"pending", b"lost", b"new"]
    async with make_pool(url, "test", pool_max=1) as pool:
        records = KafkaTopicScan(new.bootstrap_servers, {}, new.progress_topic)
        await OrphanNames(
            PostgresOrphans(pool), PostgresSeenTopics(pool), records, FreeLocks()
        ).step()
    with psycopg.connect(url) as connection:
        assert named_orphans(connection)[lost[0]] == ("account", "t-1")
