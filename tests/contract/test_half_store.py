"""The contract of the half store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from outbox.messages.message import (
    DecidedBy,
    End,
    Ended,
    Message,
    NoSuchMessage,
    Prepared,
    Resolution,
    State,
    TransactionIdReused,
)
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.relay.commit_log import recover_published
from outbox.postgres.sessions.connections import PLAN_ONCE, connect, make_pool
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

COMMIT, ROLLBACK, UNKNOWN = Resolution.COMMIT, Resolution.ROLLBACK, Resolution.UNKNOWN


pytestmark = pytest.mark.postgres


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresHalfStore]:
    async with make_pool(database_url, "test", pool_max=10, plans=PLAN_ONCE) as pool:
        await store_group(pool, make_group())
        await store_topic(pool, "points-earned")
        yield PostgresHalfStore(pool)


async def prepared(store: PostgresHalfStore, **fields: object) -> Prepared:
    (answer,) = await store.prepare([make_message(**fields)])  # type: ignore[arg-type]
    assert isinstance(answer, Prepared)
    return answer


def ending(half: Prepared, decision: Resolution = COMMIT, **fields: object) -> End:
    return End(half_id=half.half.half_id, nonce=half.half.nonce, decision=decision, **fields)  # type: ignore[arg-type]


async def ended(store: PostgresHalfStore, end: End) -> Ended:
    (answer,) = await store.end([end])
    assert isinstance(answer, Ended)
    return answer


async def test_a_transaction_id_that_is_not_the_messages_looks_like_an_unknown_one(
    store: PostgresHalfStore,
) -> None:
    half, nameless = await prepared(store, transaction_id="t-1"), await prepared(store)
    for decision in (COMMIT, UNKNOWN):
        other = ending(half, decision, transaction_id="t-2")
        given = ending(nameless, decision, transaction_id="t-1")
        assert await store.end([other, given]) == [NoSuchMessage(), NoSuchMessage()]
    own = ending(half, COMMIT, transaction_id="t-1")
    assert (await ended(store, own)).already_ended is False
    assert (await ended(store, own)).already_ended is True
    assert await store.end([ending(half, COMMIT, transaction_id="t-2")]) == [NoSuchMessage()]


async def test_concurrent_twins_make_one_half(store: PostgresHalfStore) -> None:
    answers = await asyncio.gather(*(prepared(store, transaction_id="invoice-1") for _ in range(8)))
    assert len({answer.half.message_id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1


def several(*keys: bytes) -> Message:
    """Return a message and its followers, each with its own key."""
    first, *others = [make_message(key=key, transaction_id="order-1") for key in keys]
    return replace(first, followers=tuple(others))


@pytest.mark.parametrize("decision", [COMMIT, ROLLBACK])
async def test_one_end_decides_all_messages_of_its_decision_and_no_other(
    store: PostgresHalfStore, database_url: str, decision: Resolution
) -> None:
    answers = await store.prepare(
        [make_message(), several(b"a", b"b", b"c"), *[make_message()] * 2]
    )
    single, whole, another, left = [each for each in answers if isinstance(each, Prepared)]
    follower = Prepared(half=whole.followers[0])
    status = (await ended(store, ending(follower, decision))).status
    assert (status.leader, status.state) == (whole.half.message_id, State.PREPARED)
    arrival = [another, whole, single]
    await store.end([ending(each, decision) for each in arrival])
    members = [half for each in arrival for half in (each.half, *each.followers)]
    with connect(database_url, "test") as connection:
        ops = connection.execute("SELECT half_id, xid, decision FROM outbox.op_message").fetchall()
        log = connection.execute("SELECT shard, half_ids, content_digests FROM outbox.commit_log")
        logged = {shard: [*zip(*lists, strict=True)] for shard, *lists in log}
    assert {half_id for half_id, *_ in ops} == {half.half_id for half in members}
    assert len({tuple(how) for _, *how in ops}) == 1
    assert logged == {
        shard: [(half.half_id, half.content_digest) for half in members if half.shard == shard]
        for shard in {half.shard for half in members if decision is COMMIT}
    }
    assert (await ended(store, ending(follower))).status.op is not None
    assert (await ended(store, ending(left, UNKNOWN))).status.state is State.PREPARED


async def test_a_repeated_prepare_compares_all_messages_of_its_decision(
    store: PostgresHalfStore,
) -> None:
    asked = replace(
        several(b"\x00\xff", b"b", b"c"),
        value=None,
        headers=(("tenant", b"north"), ("a", b"\x01\xff"), ("none", None)),
        content_type="application/json",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        partition=3,
        tags=("x", "y"),
        check_immunity_seconds=60,
        key_id="k1",
    )
    first, twin = await store.prepare([asked, asked])
    assert isinstance(first, Prepared)
    assert twin == replace(first, replayed=True)
    assert first.half.message == asked
    alike, _ = asked.followers
    for member, followers in (("messages/2/key", (alike, alike)), ("messages", (alike,))):
        other = replace(asked, followers=followers)
        reused = TransactionIdReused(existing_message_id=first.half.message_id, member=member)
        assert await store.prepare([other]) == [reused]


async def test_a_follower_in_kafka_proves_the_commit_of_its_whole_decision(
    store: PostgresHalfStore, database_url: str
) -> None:
    (whole,) = await store.prepare([several(b"a", b"b", b"c")])
    assert isinstance(whole, Prepared)
    found = whole.followers[1]
    with connect(database_url, "test") as session:
        recover_published(session, found.shard, 0, [(found.half_id, found.nonce)])
        committed = "SELECT sum(cardinality(half_ids))::int FROM outbox.commit_log"
        assert session.execute(committed.encode()).fetchone() == (3,)
    op = (await ended(store, ending(whole, UNKNOWN))).status.op
    assert op is not None
    assert op.decided_by is DecidedBy.RECOVERY
