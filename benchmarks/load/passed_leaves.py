"""Leaves that every reader has passed: some full of published messages, others retired since.

Each message was ended alone: it has a transaction id and a commit row of its own. The ids pass by a
shift of their base, as that many transactions would pass them. Retirement is that of the checker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, LiteralString

from psycopg.errors import LockNotAvailable

from benchmarks.load.history import LEAF_XIDS
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.sessions.connections import Connection, make_pool

RETENTION_SECONDS: Final = 7 * 86_400
RETIRED_DAYS: Final = 8
BATCH: Final = 20
"""The commits of a batch that the relay published."""
ATTEMPTS: Final = 100
"""Each waits for a lock for 50 ms."""
SHIFT: Final = "UPDATE outbox.installation SET base = base + %s"
_AGE: Final = "UPDATE outbox.publication_log SET published_at = now() - make_interval(days => %s)"
_PRESENT: Final = "SELECT outbox.watermark() >> 20"
_CREATE: Final = "SELECT outbox.create_leaf(%s)"
_AT: Final[LiteralString] = "now() - make_interval(days => %(days)s)"
_XIDS: Final[LiteralString] = " FROM generate_series(%(first)s::int8, %(last)s) x"
_HALF: Final[LiteralString] = "(x << 15) | (x %% %(shards)s)"
_STATEMENTS: Final[tuple[LiteralString, ...]] = (
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id, key, value)"
    f" SELECT {_HALF}, x, {_AT}, x, %(group)s, %(topic)s, '\\x6b', %(value)s{_XIDS}",
    "INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)"
    f" SELECT {_HALF}, x, {_AT}, 1, 1{_XIDS} WHERE x >= %(first)s + %(undecided)s",
    "INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)"
    f" SELECT x %% %(shards)s, x, {_AT}, ARRAY[{_HALF}], ARRAY[x]{_XIDS}"
    " WHERE x >= %(first)s + %(undecided)s",
    "INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n,"
    " published_at, half_ids, partitions, offsets)"
    f" SELECT x %% %(shards)s, max(x), 1, x / %(batch)s, min(x), 0, {_AT},"
    f" array_agg({_HALF}), array_agg(0), array_agg(x){_XIDS}"
    " WHERE x >= %(first)s + %(undecided)s GROUP BY x %% %(shards)s, x / %(batch)s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """What the messages of a passed leaf have in common."""

    group_id: int
    topic_id: int
    shards: int
    value: bytes


def shift(session: Connection, leaves: int) -> range:
    """Let so many leaves pass; return those that no transaction has used or will use."""
    present = _one(session, _PRESENT)
    session.execute(SHIFT, ((leaves + 1) * LEAF_XIDS,))
    return range(present + 1, present + 1 + leaves)


def age(session: Connection) -> None:
    """Make the batches that are published as old as retired leaves: their ends passed those."""
    session.execute(_AGE, (RETIRED_DAYS,))


def owner_of(session: Connection, group: str, topic: str, value: bytes) -> Owner:
    """Return the owner of messages of a group and a topic that exist."""
    return Owner(
        group_id=_one(session, "SELECT id FROM outbox.producer_group WHERE name = %s", group),
        topic_id=_one(session, "SELECT id FROM outbox.topic WHERE name = %s", topic),
        shards=_one(session, "SELECT shards FROM outbox.installation"),
        value=value,
    )


def fill(
    session: Connection,
    leaf: int,
    owner: Owner,
    messages: int,
    *,
    days: int = 0,
    undecided: int = 0,
) -> None:
    """Create a leaf with published messages, so many days old; the first ones are undecided."""
    _create(session, leaf)
    first = leaf * LEAF_XIDS + 1
    given = {
        "group": owner.group_id,
        "topic": owner.topic_id,
        "shards": owner.shards,
        "value": owner.value,
        "first": first,
        "last": first + messages - 1,
        "days": days,
        "undecided": undecided,
        "batch": BATCH,
    }
    for statement in _STATEMENTS:
        session.execute(statement, given)


async def retire(database_url: str, leaves: Iterable[int]) -> None:
    """Remove leaves as a checker does; raises SystemExit if one waits for something."""
    async with make_pool(database_url, "bench", pool_max=1) as pool:
        retirement = PostgresRetirement(
            pool, retention_seconds=RETENTION_SECONDS, hold_seconds=RETENTION_SECONDS
        )
        for leaf in leaves:
            reason = await retirement.waits_for(leaf)
            if reason is not None or not await _removed(retirement, leaf):
                raise SystemExit(f"leaf {leaf} was not retired: {reason or 'locked'}")


async def _removed(retirement: PostgresRetirement, leaf: int) -> bool:
    for _ in range(ATTEMPTS):
        if await retirement.remove(leaf):
            return True
    return False


def _create(session: Connection, leaf: int) -> None:
    """Create a leaf; the running checker may have a lock for a moment."""
    for attempt in range(ATTEMPTS):
        try:
            session.execute(_CREATE, (leaf,))
        except LockNotAvailable:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def _one(session: Connection, question: LiteralString, *given: object) -> int:
    row = session.execute(question, given).fetchone()
    assert row is not None
    return int(row[0])
