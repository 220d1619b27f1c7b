"""SQL mode on real PostgreSQL and Kafka: a producer's own transaction publishes."""

from __future__ import annotations

import asyncio
import json
import re

import psycopg
import pytest

from benchmarks.load.committed import register
from outbox.failpoints import FailpointRaised, arm
from outbox.messages.content_digest import content_digest
from outbox.messages.message import End, Prepared, Resolution
from outbox.messages.message_id import parse_message_id, shard_in, shard_of
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_paths import PROJECT
from tests.integration.checker.relay.fixtures_relay import drain
from tests.integration.checker.relay.fixtures_shop import WAITING, Shop

PAST = "UPDATE outbox.half_message SET prepared_at = prepared_at - interval '1 minute'"

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


async def test_a_commit_publishes_once_with_every_header(shop: Shop, pool: Pool) -> None:
    headers = {"tenant": "nörd", "schema": {"base64": "Af8="}, "none": None}
    with shop.transaction() as session:
        row = session.execute(
            "SELECT outbox.publish('account', %s, %s, %s, %s, 't-1', 'text/plain')",
            (shop.world.topic, "ü paid".encode(), shop.key, json.dumps(headers)),
        ).fetchone()
    assert row is not None
    assert await PostgresSqlOutbox(pool).admit() == 1
    batch = shop.world.next_batch()
    drain(shop.world.relay())
    (record,) = shop.world.records(1)
    assert (record.key, record.value) == (shop.key.encode(), "ü paid".encode())
    assert list(record.headers) == [
        ("outbox_message_id", str(row[0]).encode()),
        ("outbox_batch", f"{batch}.0".encode()),
        ("outbox_decided_by", b"producer"),
        ("outbox_producer_group", b"account"),
        ("outbox_transaction_id", b"t-1"),
        ("content-type", b"text/plain"),
        ("tenant", "nörd".encode()),
        ("schema", b"\x01\xff"),
        ("none", None),
    ]
    message_id, covered = str(row[0]).encode(), record.headers[3:]
    digest = content_digest(message_id, record.topic, record.key, record.value, covered)
    newest = "SELECT content_digests[1] FROM outbox.commit_log ORDER BY xid DESC LIMIT 1"
    assert shop.world.one(newest) == digest


async def test_a_rollback_and_a_savepoint_rolled_back_leave_no_trace(
    shop: Shop, pool: Pool
) -> None:
    with shop.transaction() as session:
        shop.publish(session, b"never")
        raise psycopg.Rollback
    with shop.transaction() as session:
        shop.publish(session, b"first")
        with session.transaction():
            shop.publish(session, b"taken back")
            raise psycopg.Rollback
        shop.publish(session, b"second")
    assert await PostgresSqlOutbox(pool).admit() == 2
    drain(shop.world.relay())
    assert shop.world.values(2) == [b"first", b"second"]
    assert shop.world.one(WAITING) == 0


async def test_f16_a_long_transaction_of_a_producer_delays_only_its_own_messages(
    shop: Shop, pool: Pool
) -> None:
    outbox, relay = PostgresSqlOutbox(pool), shop.world.relay()
    with shop.transaction() as long:
        shop.publish(long, b"late")
        shop.publish_alone(b"one", b"two")
        shop.world.commit_values(b"over REST")
        assert await outbox.admit() == 2
        drain(relay)
        assert shop.world.values(3) == [b"over REST", b"one", b"two"]
        bound = shop.world.one("SELECT outbox.watermark() << 15")
        async with pool.connection() as connection:
            await connection.execute(PAST)
        assert await PostgresSweep(pool).sweep(100)
        assert shop.world.one("SELECT max(half_id) < %s FROM outbox.half_message", bound)
    assert await outbox.admit() == 1
    drain(relay)
    drain(shop.world.relay_again())
    assert shop.world.values(4) == [b"over REST", b"one", b"two", b"late"]
    assert shop.world.one("SELECT count(*) FROM outbox.already_published WHERE shard = 3") == 0


async def test_g6_a_message_published_after_the_commit_of_another_comes_after_it_whatever_the_xids(
    shop: Shop, pool: Pool
) -> None:
    with shop.transaction() as early:
        early.execute("CREATE TEMPORARY TABLE business () ON COMMIT DROP")
        shop.publish_alone(b"a")
        shop.publish(early, b"b")
    assert await PostgresSqlOutbox(pool).admit() == 2
    drain(shop.world.relay())
    assert shop.world.values(2) == [b"a", b"b"]


async def test_g6_one_key_keeps_its_order_over_both_modes(shop: Shop, pool: Pool) -> None:
    store = PostgresHalfStore(pool)
    message = shop.world.message(b"2 over REST", shop.key.encode())
    shop.publish_alone(b"1 in SQL")
    (prepared,) = await store.prepare([message])
    assert isinstance(prepared, Prepared)
    half = prepared.half
    await store.end([End(half_id=half.half_id, nonce=half.nonce, decision=Resolution.COMMIT)])
    shop.publish_alone(b"3 in SQL")
    await PostgresSqlOutbox(pool).admit()
    drain(shop.world.relay())
    assert shop.world.values(3) == [b"1 in SQL", b"2 over REST", b"3 in SQL"]


async def test_concurrent_processes_admit_each_message_once(shop: Shop, pool: Pool) -> None:
    shop.publish_alone(*[b"%d" % n for n in range(20)])
    workers = [PostgresSqlOutbox(pool, batch_max=3) for _ in range(4)]
    admitted = await asyncio.gather(*(worker.admit() for worker in workers))
    assert sum(each or 0 for each in admitted) == 20
    drain(shop.world.relay())
    assert shop.world.values(20) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize("point", ["after_take", "before_commit", "after_commit"])
async def test_an_admission_that_fails_anywhere_is_finished_by_the_next(
    shop: Shop, pool: Pool, point: str
) -> None:
    shop.publish_alone(b"one", b"two")
    arm(f"plain.{point}=raise#1")
    with pytest.raises(FailpointRaised):
        await PostgresSqlOutbox(pool).admit()
    arm(None)
    await PostgresSqlOutbox(pool).admit()
    drain(shop.world.relay())
    assert shop.world.values(2) == [b"one", b"two"]


def test_sql_computes_the_same_ids_and_shards_as_python(shop: Shop) -> None:
    keys = ["", "a", "ключ", "k" * 8192, *(f"member-{n}" for n in range(40))]
    with shop.transaction() as session:
        ids = [parse_message_id(str(shop.publish(session, b"v", key)))[0] for key in keys if key]
    topic = shop.world.topic
    assert [shard_in(half_id) for half_id in ids] == [
        shard_of(topic, key.encode()) % shop.world.one("SELECT shards FROM outbox.installation")
        for key in keys
        if key
    ]
    stored = shop.world.connection.execute(
        "SELECT half_id FROM outbox.plain_message ORDER BY place"
    ).fetchall()
    assert [half_id for (half_id,) in stored] == ids


def test_the_example_of_the_page_on_sql_mode_runs_unchanged(shop: Shop) -> None:
    page = (PROJECT / "docs" / "sql-mode.md").read_text()
    blocks = dict(re.findall(r"```sql\n-- (\w+)\n(.*?)```", page, re.DOTALL))
    connection = shop.world.connection
    register(connection, "points-earned", "account-service")
    connection.execute(blocks["allow_publish"].replace("'shop'", f"'{shop.role}'").encode())
    connection.execute(
        "CREATE TABLE public.account (member text, balance integer);"
        f" GRANT SELECT, UPDATE ON public.account TO {shop.role}".encode()
    )
    with psycopg.connect(shop.url, autocommit=True) as session:
        session.execute(blocks["publish"].encode())
    assert shop.world.one(WAITING) == 1
