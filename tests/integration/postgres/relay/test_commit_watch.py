"""The watch reports each final commit once, and nothing while the watermark is unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.load.committed import append_committed, commit_directly, register
from outbox.errors import DatabaseUnavailable
from outbox.postgres.relay.commit_watch import ALL_SHARDS, PostgresCommitWatch
from outbox.postgres.sessions.connections import Connection, connect

pytestmark = pytest.mark.postgres


@pytest.fixture
def watch(database_url: str) -> Iterator[PostgresCommitWatch]:
    """Yield a watch that has looked once."""
    with closing(PostgresCommitWatch(database_url)) as opened:
        assert opened.fresh_shards() == ALL_SHARDS
        yield opened


def test_a_commit_is_reported_once_and_only_for_its_shard(
    watch: PostgresCommitWatch, session: Connection
) -> None:
    message = register(session, "points-earned")
    assert watch.fresh_shards() == frozenset()
    commit_directly(session, [message], shard=5)
    assert watch.fresh_shards() == {5}
    assert watch.fresh_shards() == frozenset()


def test_a_commit_is_reported_only_after_it_is_final(
    watch: PostgresCommitWatch, session: Connection, database_url: str
) -> None:
    message = register(session, "points-earned")
    with connect(database_url, "slow") as slow:
        with slow.transaction(), slow.cursor() as cursor:
            append_committed(cursor, [message], shard=1)
            commit_directly(session, [message], shard=2)
            assert watch.fresh_shards() == frozenset()
        assert watch.fresh_shards() == {1, 2}


def test_after_a_lost_session_every_shard_is_fresh(
    watch: PostgresCommitWatch, session: Connection
) -> None:
    session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'outbox-relay-watch' AND datname = current_database()"
    )
    with pytest.raises(DatabaseUnavailable):
        watch.fresh_shards()
    assert watch.fresh_shards() == ALL_SHARDS
