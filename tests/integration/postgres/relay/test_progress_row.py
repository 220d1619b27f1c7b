"""The progress row under two owners: the lock is for liveness only, so both may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from outbox.errors import CursorMoved, DatabaseUnavailable
from outbox.messages.manifest import Position
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import connect
from outbox.relay.protocol.state import Cursor, HaltReason, Identity, Progress, first_gen
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.postgres

IDENTITY = Identity("cluster", "topic", "system")
ENDED = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2)
    AND datname = current_database()
"""
CURSOR = Cursor(Position(90, 2), 5, 3, 0xAA, 4)


@pytest.fixture
def commit_log(database_url: str) -> Iterator[PostgresCommitLog]:
    """Yield the commit log of a shard that has no progress row."""
    with connect(database_url, "test") as session:
        session.execute("DELETE FROM outbox.progress WHERE name = 'relay:3'")
    log = PostgresCommitLog(database_url, 3, batch_max=100, owner="test")
    yield log
    log.close()


def test_the_row_is_read_as_it_was_saved(commit_log: PostgresCommitLog) -> None:
    assert commit_log.progress() is None
    commit_log.save(CURSOR, IDENTITY, ())
    assert commit_log.progress() == Progress(CURSOR, IDENTITY, None)


@pytest.mark.parametrize("older", [CURSOR._replace(gen=3, batch_no=9), CURSOR._replace(batch_no=2)])
def test_an_older_cursor_moves_nothing(commit_log: PostgresCommitLog, older: Cursor) -> None:
    commit_log.save(CURSOR, IDENTITY, ())
    with pytest.raises(CursorMoved):
        commit_log.save(older, IDENTITY, ())
    assert commit_log.progress() == Progress(CURSOR, IDENTITY, None)


def test_only_the_owner_of_the_stored_generation_leaves_a_transactional_id(
    commit_log: PostgresCommitLog,
) -> None:
    commit_log.save(CURSOR, IDENTITY, ())
    commit_log.leave_transactional_id(CURSOR.gen)
    for gen in (CURSOR.gen, CURSOR.gen + 2):
        with pytest.raises(CursorMoved):
            commit_log.leave_transactional_id(gen)
    left = CURSOR._replace(gen=first_gen(1))
    assert commit_log.progress() == Progress(left, IDENTITY, None)
    with pytest.raises(CursorMoved):
        commit_log.save(left, IDENTITY, (), begins=True)


def test_a_halted_shard_stores_no_cursor(commit_log: PostgresCommitLog) -> None:
    commit_log.save(CURSOR, IDENTITY, ())
    commit_log.halt(HaltReason.CHAIN_BROKEN)
    with pytest.raises(CursorMoved):
        commit_log.save(CURSOR._replace(gen=5), IDENTITY, ())
    assert commit_log.progress() == Progress(CURSOR, IDENTITY, HaltReason.CHAIN_BROKEN)


def test_a_halt_by_a_foreign_transaction_ends_with_the_next_saved_cursor(
    commit_log: PostgresCommitLog,
) -> None:
    commit_log.save(CURSOR, IDENTITY, ())
    commit_log.halt(HaltReason.REPLAY_STUCK)
    commit_log.save(CURSOR, IDENTITY, ())
    assert commit_log.progress() == Progress(CURSOR, IDENTITY, None)


def test_a_missing_row_halts_the_shard(commit_log: PostgresCommitLog) -> None:
    assert commit_log.try_lock()
    commit_log.halt(HaltReason.CURSOR_MISSING)
    assert commit_log.progress() == Progress(None, None, HaltReason.CURSOR_MISSING)


def test_a_row_that_another_owner_has_just_created_is_not_missing(
    commit_log: PostgresCommitLog,
) -> None:
    """Two relays at a shard's first start: the one that was fenced must not stop the other."""
    commit_log.save(CURSOR, IDENTITY, ())
    commit_log.halt(HaltReason.CURSOR_MISSING)
    assert commit_log.progress() == Progress(CURSOR, IDENTITY, None)


def test_an_owner_whose_session_was_ended_does_not_halt_the_next_owner(
    commit_log: PostgresCommitLog, database_url: str
) -> None:
    """Not on a new session either, which would not have the lock."""
    assert commit_log.try_lock()
    following = PostgresCommitLog(database_url, 3, batch_max=100, owner="next")
    with closing(following), connect(database_url, "test") as session:
        assert not following.try_lock()
        session.execute(ENDED)
        wait_for(following.try_lock)
        following.save(CURSOR, IDENTITY, ())
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                commit_log.halt(HaltReason.CHAIN_BROKEN)
        assert following.progress() == Progress(CURSOR, IDENTITY, None)


def test_postgresql_ends_the_session_of_an_owner_that_is_silent(
    commit_log: PostgresCommitLog, database_url: str
) -> None:
    """A frozen relay keeps its lock for half a minute; here the limit is a moment."""
    assert commit_log.try_lock()
    session = commit_log._connection
    assert session is not None
    assert session.execute("SHOW idle_session_timeout").fetchone() == ("30s",)
    session.execute("SET idle_session_timeout = '100ms'")
    with closing(PostgresCommitLog(database_url, 3, batch_max=100, owner="next")) as following:
        wait_for(following.try_lock)
    with pytest.raises(DatabaseUnavailable):
        commit_log.keep_alive()
