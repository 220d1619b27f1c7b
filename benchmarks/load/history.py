"""An installation whose messages are published: long history, and nothing left to do."""

from __future__ import annotations

from typing import Final, LiteralString

from psycopg.rows import tuple_row

from outbox.postgres.sessions.connections import Connection, Pool

_OF_XIDS: Final[LiteralString] = " FROM generate_series(%(first)s::int8, %(last)s) x"
_STATEMENTS: Final[tuple[LiteralString, ...]] = (
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id)"
    " SELECT (x << 15) | (x & 15), x, now(), x, %(group)s, %(topic)s",
    "INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)"
    " SELECT (x << 15) | (x & 15), x, now(), 1, 1",
    "INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)"
    " SELECT x & 15, x, now(), ARRAY[(x << 15) | (x & 15)], ARRAY[x]",
)
_CHECKED: Final[tuple[LiteralString, ...]] = (
    "INSERT INTO outbox.progress (name, position) VALUES ('sweep', (%(last)s::int8 + 1) << 15)"
    " ON CONFLICT (name) DO UPDATE SET position = excluded.position",
    "INSERT INTO outbox.check_class (producer_group_id, delay_seconds, position)"
    " VALUES (%(group)s, 30, %(last)s::int8 << 15)"
    " ON CONFLICT (producer_group_id, delay_seconds) DO UPDATE SET position = excluded.position",
)
_PUBLISHED: Final[LiteralString] = (
    "INSERT INTO outbox.progress (name, position, position_n)"
    " SELECT 'relay:' || s, max(xid), 1 FROM generate_series(0, 15) s"
    " JOIN outbox.commit_log c ON c.shard = s GROUP BY s"
    " ON CONFLICT (name) DO UPDATE SET position = excluded.position"
)
LEAF_XIDS: Final = 1 << 20


def publish_history(session: Connection, group_id: int, topic_id: int, messages: int) -> int:
    """Store messages, one a flush, in two leaves or more; every reader has passed all of them.

    Returns the first xid that is free.
    """
    leaves = max(2, -(-messages // (LEAF_XIDS // 2)))
    for leaf in range(leaves):
        session.execute("SELECT outbox.create_leaf(%s)", (leaf,))
        xids = range(leaf * LEAF_XIDS + 1, leaf * LEAF_XIDS + 1 + messages // leaves)
        commit_flushes(session, group_id, topic_id, xids)
    check_all(session, group_id, xids[-1])
    session.execute(_PUBLISHED)
    return xids[-1] + 1


def check_all(session: Connection, group_id: int, last: int) -> None:
    """Let the sweep and the checks pass the messages up to an xid; the relays have not."""
    for statement in _CHECKED:
        session.execute(statement, {"group": group_id, "last": last})


def commit_flushes(session: Connection, group_id: int, topic_id: int, xids: range) -> None:
    """Store one committed message a flush, which no reader has passed yet."""
    asked = {"group": group_id, "topic": topic_id, "first": xids[0], "last": xids[-1]}
    for statement in _STATEMENTS:
        session.execute(statement + _OF_XIDS, asked)


def report_reads(session: Connection) -> None:
    """Send the session's statistics now, so that a later ``tuples_read`` does not see them come.

    A session would otherwise send what is left of them when it ends, and no test waits for that.
    """
    session.execute("SELECT pg_stat_force_next_flush()")


async def tuples_read(pool: Pool) -> int:
    """Return how many rows and index entries were ever read; ``pool`` has one connection."""
    async with pool.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        cursor = connection.cursor(row_factory=tuple_row)
        await cursor.execute(
            "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'outbox')"
            " + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'outbox')"
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])
