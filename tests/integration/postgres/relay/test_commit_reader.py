"""The relay reads final commits only, in commit order, also from the middle of a commit row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import LiteralString

import psycopg
import pytest

from benchmarks.load.committed import commit_directly, register
from outbox.errors import CommittedMessageGone
from outbox.messages.manifest import Position
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.verified_sessions import connect_verified
from tests.fixtures_waiting import wait_for
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    NEXT_LEAF,
    SESSIONS_THAT_WAIT,
    WITHOUT_LEAF,
)
from tests.integration.postgres.relay.fixtures_shard import SHARD

pytestmark = pytest.mark.postgres


@pytest.fixture
def start(session: Connection) -> Position:
    """Return a position before everything that the test commits."""
    row = session.execute("SELECT outbox.watermark() - 1").fetchone()
    assert row is not None
    return Position(row[0], 0)


def read_ids(commit_log: PostgresCommitLog, after: Position) -> list[int]:
    return [message.half_id for message in commit_log.read(after).messages]


def test_a_row_is_read_on_from_its_middle(
    commit_log: PostgresCommitLog, session: Connection, start: Position
) -> None:
    ids = commit_directly(session, [register(session, "points-earned")] * 3, shard=SHARD)
    assert read_ids(commit_log, Position(ids[0] >> 15, 1)) == ids[1:]
    assert commit_log.read(start, 2).to == Position(ids[0] >> 15, 2)


def test_a_read_that_waits_while_a_leaf_is_made_passes_none_of_its_commits_over(
    session: Connection, start: Position, database_url: str
) -> None:
    message = register(session, "points-earned")
    session.execute(WITHOUT_LEAF)
    first = commit_directly(session, [message], shard=SHARD)
    session.execute(NEXT_LEAF)
    second = commit_directly(session, [message], shard=SHARD)
    log = PostgresCommitLog(
        database_url, SHARD, batch_max=100, owner="test", connect=connect_verified
    )
    with ThreadPoolExecutor() as relay, closing(log), psycopg.connect(database_url) as maker:
        assert log.try_lock()
        maker.execute("SELECT outbox.create_leaf(%s)", [first[0] >> 35])
        reading = relay.submit(read_ids, log, start)
        wait_for(lambda: session.execute(SESSIONS_THAT_WAIT).fetchone() == (1,))
        maker.commit()
        assert reading.result() == [*first, *second]


@pytest.mark.parametrize("table", ["half_message", "op_message"])
def test_a_commit_whose_row_is_missing_is_not_passed_over(
    commit_log: PostgresCommitLog, session: Connection, start: Position, table: LiteralString
) -> None:
    (half_id,) = commit_directly(session, [register(session, "points-earned")], shard=SHARD)
    session.execute(f"DELETE FROM outbox.{table} WHERE half_id = %s", [half_id])
    with pytest.raises(CommittedMessageGone, match=str(half_id)):
        commit_log.read(start)


def test_a_batch_tells_whether_a_caller_waits_for_it(
    commit_log: PostgresCommitLog, session: Connection, start: Position
) -> None:
    message = register(session, "points-earned")
    commit_directly(session, [message], shard=SHARD)
    assert not commit_log.read(start).awaited
    ids = commit_directly(session, [message], shard=SHARD)
    session.execute("UPDATE outbox.commit_log SET awaited = true WHERE xid = %s", (ids[0] >> 15,))
    assert commit_log.read(start).awaited
