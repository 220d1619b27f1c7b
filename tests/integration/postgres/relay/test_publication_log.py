"""What the relay saves as published is what the status of each message shows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from benchmarks.load.committed import commit_directly, register
from outbox.messages.manifest import Kind, Manifest, Position
from outbox.messages.message import MessageStatus, Publication, State
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.message_status import statuses_now
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import Connection, make_pool
from outbox.relay.protocol.answers import Delivered, DeliveryReport
from outbox.relay.protocol.state import Cursor, Identity
from tests.integration.postgres.relay.fixtures_shard import SHARD

pytestmark = pytest.mark.postgres

IDENTITY = Identity("cluster", "topic", "system")
PAST = 1_000
"""Batches and generations that the shard may have had before: more than any installation here."""
RELEASED = """
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error,
    released_at, release_batch_no, released_partition, released_offset)
SELECT half_id, nonce, %s, topic_id, half_id >> 15, 2, 'MSG_SIZE_TOO_LARGE',
    clock_timestamp(), %s, 0, 7
FROM outbox.half_message WHERE half_id = %s
"""


def batch_of(ids: Sequence[HalfId], after_n: int, number: int) -> Delivered:
    """Return a batch of messages of one commit row that follow its first ``after_n``."""
    xid, count = ids[0] >> 15, len(ids)
    manifest = Manifest(
        installation=UUID(int=7),
        shard=SHARD,
        gen=PAST,
        kind=Kind.BATCH,
        batch_no=PAST + number,
        prev_crc=0,
        after=Position(xid, after_n),
        to=Position(xid, after_n + count),
        entries=(),
    )
    partitions = [4 + n for n in range(count)]
    offsets = [number * 1000 + n for n in range(count)]
    return manifest, DeliveryReport(
        count, crc=0xAA, half_ids=ids, partitions=partitions, offsets=offsets
    )


def cursor_at(published: Delivered) -> Cursor:
    manifest, delivery = published
    batch_no = manifest.batch_no
    return Cursor(manifest.to, 5 + batch_no, batch_no, delivery.crc, PAST)


def statuses_of(database_url: str, ids: Sequence[HalfId]) -> list[MessageStatus]:
    async def read() -> list[MessageStatus]:
        async with make_pool(database_url, "test", pool_max=2) as pool:
            found = await statuses_now(pool, ids)
        return [found[half_id] for half_id in ids]

    return asyncio.run(read())


def place_of(status: MessageStatus) -> tuple[int | None, int | None] | None:
    publication: Publication | None = status.publication
    return None if publication is None else (publication.partition, publication.offset)


def test_each_message_of_each_saved_batch_has_its_own_partition_and_offset(
    commit_log: PostgresCommitLog, session: Connection, database_url: str
) -> None:
    ids = commit_directly(session, [register(session, "points-earned")] * 3, shard=SHARD)
    first, second = batch_of(ids[:1], 0, 1), batch_of(ids[1:], 1, 2)
    commit_log.save(cursor_at(second), IDENTITY, (first, second))
    found = statuses_of(database_url, ids)
    assert [place_of(status) for status in found] == [(4, 1000), (4, 2000), (5, 2001)]
    assert {status.state for status in found} == {State.PUBLISHED}


def test_in_the_middle_of_a_commit_row_only_what_the_relay_has_passed_is_published(
    commit_log: PostgresCommitLog, session: Connection, database_url: str
) -> None:
    ids = commit_directly(session, [register(session, "points-earned")] * 3, shard=SHARD)
    batch = batch_of(ids[:2], 0, 1)
    commit_log.save(cursor_at(batch), IDENTITY, (batch,))
    found = statuses_of(database_url, ids)
    assert [status.state for status in found] == [
        State.PUBLISHED,
        State.PUBLISHED,
        State.COMMITTED,
    ]
    assert place_of(found[2]) is None


def test_a_batch_that_is_saved_twice_keeps_its_places(
    commit_log: PostgresCommitLog, session: Connection, database_url: str
) -> None:
    ids = commit_directly(session, [register(session, "points-earned")], shard=SHARD)
    batch = batch_of(ids, 0, 1)
    for _ in range(2):
        commit_log.save(cursor_at(batch), IDENTITY, (batch,))
    assert [place_of(status) for status in statuses_of(database_url, ids)] == [(4, 1000)]


def test_a_record_that_was_held_has_the_place_of_its_release(
    session: Connection, database_url: str
) -> None:
    (held,) = commit_directly(session, [register(session, "points-earned")], shard=SHARD)
    session.execute(RELEASED, (SHARD, PAST, held))
    assert [place_of(status) for status in statuses_of(database_url, [held])] == [(0, 7)]
