"""A batch reads what concerns its own messages, however many records of its shard are held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString

import pytest

from benchmarks.load.committed import commit_directly, register
from outbox.messages.manifest import Position
from outbox.messages.message_id import HalfId, Nonce, message_id_bytes
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import PLAN_ONCE_IN_ORDER, Connection, connect
from outbox.relay.protocol.state import Refusal, Refused
from tests.fixtures_replacing import replace

pytestmark = pytest.mark.postgres

SHARD = 3
HELD = 100_000
BATCH = 10
HOLD = """
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, topic_wide, xid, n,
    publish_error, attempts, next_attempt_at)
SELECT i, i, %(shard)s, t.id, %(key)s || convert_to((i %% %(keys)s)::text, 'UTF8'),
    %(wide)s AND i = %(first)s, 0, i %% 2147483647, 'e', (i = %(first)s)::int,
    clock_timestamp() + make_interval(secs => CASE WHEN i = %(first)s THEN %(wait)s ELSE 0 END)
FROM generate_series(%(first)s::int8, %(first)s + %(count)s - 1) i, outbox.topic t
WHERE t.name = %(topic)s
"""
COMMIT: tuple[LiteralString, ...] = (
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id, key) SELECT h.half_id, h.nonce, now(), 0, g.id, h.topic_id,"
    " h.key FROM outbox.held_record h, outbox.producer_group g"
    " WHERE half_id BETWEEN %(first)s AND %(first)s + least(%(count)s, 100) - 1"
    " ON CONFLICT DO NOTHING",
    "INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)"
    " SELECT half_id, 1, now(), 1, 1 FROM outbox.held_record"
    " WHERE half_id BETWEEN %(first)s AND %(first)s + least(%(count)s, 100) - 1"
    " ON CONFLICT DO NOTHING",
)
"""Stores the first of the held messages; none of the others is read."""
READ = """
SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'outbox.held_record'::regclass)
    + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes
       WHERE relid = 'outbox.held_record'::regclass)
"""


class Shard:
    """The commit log of one shard, and the session that it uses."""

    def __init__(self, url: str) -> None:
        self.session = connect(url, "relay-3", PLAN_ONCE_IN_ORDER)
        row = self.session.execute("SELECT outbox.watermark() - 1").fetchone()
        assert row is not None
        self.after = Position(row[0], 1 << 30)
        """A position after every held record, and before every commit of the test."""
        self.log = PostgresCommitLog(
            url, SHARD, batch_max=2000, owner="test", connect=lambda *_: self.session
        )

    def hold(self, topic: str, **asked: object) -> None:
        """Hold records of a topic; the first is refused, the others wait."""
        usual = {"shard": SHARD, "key": b"k", "keys": 1, "wide": False, "wait": 300.0, "first": 1}
        register(self.session, topic)
        given = {**usual, "count": HELD, "topic": topic, **asked}
        self.session.execute(HOLD.encode(), given)
        for statement in COMMIT:
            self.session.execute(statement, given)

    def tuples(self) -> int:
        """Return how many rows and index entries of held_record were ever read."""
        self.session.execute("SELECT pg_stat_force_next_flush()")
        self.session.execute("SELECT pg_stat_clear_snapshot()")
        row = self.session.execute(READ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def shard(database_url: str) -> Iterator[Shard]:
    made = Shard(database_url)
    with made.session:
        yield made


def commit(session: Connection, topic: str, *keys: bytes) -> None:
    template = register(session, topic)
    made = [replace(template, key=key) for key in keys]
    commit_directly(session, made, SHARD)


@pytest.mark.parametrize(
    ("wide", "keys"), [(True, HELD), (False, 1)], ids=["a topic with many keys", "one key"]
)
def test_a_batch_does_not_read_the_records_that_wait_in_a_scope(
    shard: Shard, wide: bool, keys: int
) -> None:
    shard.hold("gone", wide=wide, keys=keys)
    commit(shard.session, "live", *(b"%d" % n for n in range(BATCH)))
    before = shard.tuples()
    commits = shard.log.read(shard.after)
    assert shard.tuples() - before < 20 * BATCH
    assert (len(commits.message_ids), commits.held, commits.due) == (BATCH, frozenset(), False)


def test_a_release_reads_its_batch_only(shard: Shard) -> None:
    shard.hold("gone", keys=1, wait=-1.0)
    shard.session.execute("UPDATE outbox.held_record SET dropped_at = now() WHERE attempts > 0")
    before = shard.tuples()
    held = shard.log.read_held(shard.after, BATCH)
    assert shard.tuples() - before < 20 * BATCH
    assert [message.half_id for message in held.messages] == list(range(2, 2 + BATCH))


def test_scopes_are_due_by_their_first_record(shard: Shard) -> None:
    shard.hold("gone", wide=True, count=10, keys=10)
    shard.hold("slow", count=3, first=100)
    assert not shard.log.read_held(shard.after).messages
    shard.session.execute(
        "UPDATE outbox.held_record SET next_attempt_at = now() WHERE half_id = 100"
    )
    held = shard.log.read_held(shard.after)
    assert [message.half_id for message in held.messages] == [100]
    shard.session.execute("UPDATE outbox.held_record SET released_at = now() WHERE half_id = 100")
    held = shard.log.read_held(shard.after)
    assert [message.half_id for message in held.messages] == [101, 102]
    assert not shard.log.read_held(Position(0, 100)).messages


def test_what_waited_for_a_topic_is_read_together_unless_a_record_of_it_is_refused(
    shard: Shard,
) -> None:
    shard.hold("gone", wide=True, count=10, keys=5)
    shard.session.execute("UPDATE outbox.held_record SET released_at = now() WHERE half_id = 1")
    assert held_ids(shard) == [*range(2, 11)]
    shard.session.execute("UPDATE outbox.held_record SET attempts = 1 WHERE half_id = 10")
    numbers = held_ids(shard)
    assert len({number % 5 for number in numbers}) == 1
    assert numbers == sorted(numbers)


def test_a_topic_is_not_held_as_a_whole_for_a_first_record_that_is_refused_for_itself(
    shard: Shard,
) -> None:
    """What was refused with the whole topic, for lack of a right, is tried again once it may be."""
    shard.hold("gone", count=1, first=1, wait=-1.0)
    shard.hold("gone", count=1, first=2, wait=-1.0, wide=True, key=b"other")
    (first,) = held_ids(shard)
    refusal = Refusal(0, "MSG_SIZE_TOO_LARGE", Refused.RECORD, named=True)
    shard.log.postpone(message_id_bytes(HalfId(first), Nonce(first)), refusal)
    assert held_ids(shard) == [2]
    commit(shard.session, "gone", b"third", b"k0")
    commits = shard.log.read(shard.after)
    assert [each in commits.held for each in commits.message_ids] == [False, True]


def held_ids(shard: Shard) -> list[int]:
    """Return the half ids of the held records that a release would begin with."""
    held = shard.log.read_held(shard.after)
    return [message.half_id for message in held.messages]
