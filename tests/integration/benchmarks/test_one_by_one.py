"""What a benchmark stores as ended one by one is what that many transactions would leave."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec.structs import replace

from benchmarks.load.committed import commit_directly, register
from benchmarks.load.one_by_one import commit_one_by_one
from outbox.messages.manifest import Position
from outbox.messages.message import Content
from outbox.messages.message_id import LOW_BITS, SHARDS
from outbox.messages.record import Committed, digest_of
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import Connection, connect

pytestmark = pytest.mark.postgres

TOPIC = "points-earned"
COUNT = 100


def test_each_has_a_commit_row_with_its_digest_which_the_relay_reads(database_url: str) -> None:
    with connect(database_url, "test") as session:
        template = register(session, TOPIC)
        contents = [Content(topic=TOPIC, key=b"key-%d" % n, value=b"v") for n in range(7)]
        before = one(session, "SELECT outbox.watermark() - 1")
        commit_one_by_one(session, [replace(template, content=c) for c in contents], COUNT)
        rows = "SELECT half_ids[1], content_digests[1] FROM outbox.commit_log WHERE xid > %s"
        stored = dict(session.execute(rows, (before,)).fetchall())
        stray = one(
            session, "SELECT count(*) FROM outbox.commit_log_default WHERE xid > %s", before
        )
        (later,) = commit_directly(session, [template])
    read = read_all(database_url, Position(before, 0))
    assert len(read) == len(stored) == COUNT
    assert {each.half_id: digest_of_record(each) for each in read} == stored
    assert (stray, max(stored) >> LOW_BITS < later >> LOW_BITS) == (0, True)


def read_all(database_url: str, after: Position) -> list[Committed]:
    """Return what the relays of all shards find after a position, without what came last."""
    found: list[Committed] = []
    for shard in range(SHARDS):
        log = PostgresCommitLog(database_url, shard, batch_max=COUNT, owner="test")
        with closing(log):
            found += [each for each in log.read(after).messages if each.key is not None]
    return found


def digest_of_record(found: Committed) -> int:
    """Return the digest of the record that the relay would publish."""
    content = Content(topic=found.topic, key=found.key, value=found.value)
    return digest_of(found.half_id, found.nonce, content, found.producer_group, None)


def one(session: Connection, question: str, *given: object) -> int:
    """Return the one number that a question answers."""
    row = session.execute(question.encode(), given).fetchone()
    assert row is not None
    return int(row[0])
