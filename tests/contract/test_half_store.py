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


@pytest.mark.parametrize(
    ("decision", "state"), [(COMMIT, State.COMMITTED), (ROLLBACK, State.ROLLED_BACK)]
)
async def test_the_first_decision_is_final(
    store: PostgresHalfStore, decision: Resolution, state: State
) -> None:
    half = await prepared(store)
    first = await ended(store, ending(half, decision))
    again = await ended(store, ending(half, decision, decided_by=DecidedBy.CHECK))
    opposite = ROLLBACK if decision is COMMIT else COMMIT
    against = await ended(store, ending(half, opposite))
    assert (first.status.state, first.already_ended, first.conflict) == (state, False, False)
    assert (again.status.op, again.already_ended, again.conflict) == (
        first.status.op,
        True,
        False,
    )
    assert (against.status.op, against.already_ended, against.conflict) == (
        first.status.op,
        True,
        True,
    )


async def test_one_flush_that_names_a_half_twice_decides_it_once_by_arrival(
    store: PostgresHalfStore,
) -> None:
    half = await prepared(store)
    answers = await store.end([ending(half, ROLLBACK), ending(half, COMMIT)])
    first, second = answers
    assert isinstance(first, Ended)
    assert isinstance(second, Ended)
    assert (first.already_ended, second.conflict) == (False, True)
    assert second.status.state is State.ROLLED_BACK


async def test_an_id_with_wrong_random_bits_looks_like_an_unknown_one(
    store: PostgresHalfStore,
) -> None:
    half = await prepared(store)
    guessed = End(half_id=half.half.half_id, nonce=half.half.nonce ^ 1, decision=COMMIT)  # type: ignore[arg-type]
    assert await store.end([guessed]) == [NoSuchMessage()]
    assert (await ended(store, ending(half, UNKNOWN))).status.state is State.PREPARED


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


async def test_a_foreign_groups_message_looks_like_an_unknown_one(store: PostgresHalfStore) -> None:
    half = await prepared(store)
    foreign = ending(half, COMMIT, groups=frozenset({99}))
    own = ending(half, COMMIT, groups=frozenset({1, 99}))
    assert await store.end([foreign]) == [NoSuchMessage()]
    assert (await ended(store, own)).already_ended is False
    assert await store.end([foreign]) == [NoSuchMessage()]


async def test_twins_in_one_flush_make_one_half(store: PostgresHalfStore) -> None:
    twin = make_message(transaction_id="invoice-1")
    first, second = await store.prepare([twin, twin])
    assert isinstance(first, Prepared)
    assert isinstance(second, Prepared)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.half == second.half


async def test_concurrent_twins_make_one_half(store: PostgresHalfStore) -> None:
    answers = await asyncio.gather(*(prepared(store, transaction_id="invoice-1") for _ in range(8)))
    assert len({answer.half.message_id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1


async def test_everything_of_a_half_is_read_back_as_it_was_sent(store: PostgresHalfStore) -> None:
    message = make_message(
        key=b"\x00\xff",
        value=None,
        headers=(("tenant", b"north"), ("a", b"\x01\xff"), ("none", None)),
        content_type="application/json",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        partition=3,
        tags=("x", "y"),
        transaction_id="t",
        check_immunity_seconds=60,
        key_id="k1",
    )
    (first,) = await store.prepare([message])
    (again,) = await store.prepare([message])
    assert isinstance(first, Prepared)
    assert isinstance(again, Prepared)
    assert again.half == first.half
    assert again.half.message == message


def several(*values: bytes, transaction_id: str | None = "order-1") -> Message:
    """A message and its followers, each with a key of its own and so in a shard of its own."""
    first, *others = [
        make_message(key=b"key-" + value, value=value, transaction_id=transaction_id)
        for value in values
    ]
    return replace(first, followers=tuple(others))


@pytest.mark.parametrize("decision", [COMMIT, ROLLBACK])
async def test_one_end_decides_all_messages_of_its_decision_and_no_other(
    store: PostgresHalfStore, database_url: str, decision: Resolution
) -> None:
    before, whole, after = await store.prepare(
        [make_message(), several(b"a", b"b", b"c", b"d"), make_message()]
    )
    assert isinstance(before, Prepared)
    assert isinstance(whole, Prepared)
    assert isinstance(after, Prepared)
    assert (await ended(store, ending(whole, decision))).already_ended is False
    members = [whole.half, *whole.followers]
    with connect(database_url, "test") as connection:
        ops = connection.execute("SELECT half_id, xid FROM outbox.op_message ORDER BY half_id")
        decided = ops.fetchall()
        log = connection.execute(
            "SELECT shard, xid, half_ids, content_digests FROM outbox.commit_log ORDER BY shard"
        ).fetchall()
    assert [half_id for half_id, _ in decided] == [half.half_id for half in members]
    assert len({xid for _, xid in decided}) == 1
    assert len({half.shard for half in members}) > 1
    assert log == [
        (shard, decided[0][1], *map(list, zip(*logged, strict=True)))
        for shard in range(16)
        if (logged := [(h.half_id, h.content_digest) for h in members if h.shard == shard])
        and decision is COMMIT
    ]
    for single in (before, after):
        assert (await ended(store, ending(single, UNKNOWN))).status.state is State.PREPARED


async def test_the_end_of_a_follower_decides_nothing_and_names_its_leader(
    store: PostgresHalfStore,
) -> None:
    (whole,) = await store.prepare([several(b"a", b"b")])
    assert isinstance(whole, Prepared)
    follower = Prepared(half=whole.followers[0])
    for decision in Resolution:
        status = (await ended(store, ending(follower, decision))).status
        assert (status.leader, status.state) == (whole.half.message_id, State.PREPARED)
    first = await ended(store, ending(whole))
    status = (await ended(store, ending(follower))).status
    assert (first.already_ended, status.leader) == (False, whole.half.message_id)
    assert status.op == first.status.op
    assert await store.end([ending(follower, groups=frozenset({99}))]) == [NoSuchMessage()]


async def test_a_repeated_prepare_compares_all_messages_of_its_decision(
    store: PostgresHalfStore,
) -> None:
    asked = several(b"a", b"b", b"c")
    first, twin = await store.prepare([asked, asked])
    assert isinstance(first, Prepared)
    assert twin == replace(first, replayed=True)
    assert first.half.message == asked
    for other, member in (
        (several(b"a", b"b", b"x"), "messages/2/key"),
        (several(b"x", b"b", b"c"), "messages/0/key"),
        (several(b"a", b"b"), "messages"),
        (several(b"a"), "messages"),
        (replace(asked, check_immunity_seconds=9), "check_immunity_seconds"),
    ):
        reused = TransactionIdReused(existing_message_id=first.half.message_id, member=member)
        assert await store.prepare([other]) == [reused]
