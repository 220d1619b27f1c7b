"""Properties that only the real store can show: durability, order, cost, outages."""

from __future__ import annotations

import psycopg
import pytest

from devservers.postgres import EmbeddedPostgres
from outbox.errors import DatabaseUnavailable
from outbox.messages.message import (
    End,
    Prepared,
    Resolution,
    TransactionIdReused,
)
from outbox.messages.message_id import shard_in, shard_of
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

pytestmark = pytest.mark.postgres

WAL_BYTES_PER_CYCLE = 600
"""The limit of prepare + COMMIT with 256-byte values in flushes of 250."""
ROUNDS = 3
"""Autovacuum of any database writes WAL too, but not in every round: the cheapest one counts."""
FLUSHES, FLUSH = 8, 250
"""The flushes of a round, and the messages of a flush."""
DAMAGE = "UPDATE outbox.half_message SET headers = '{odd}' WHERE half_id = %(half_id)s"


@pytest.fixture
async def store(pool: Pool) -> PostgresHalfStore:
    await store_group(pool, make_group())
    await store_topic(pool, "points-earned")
    return PostgresHalfStore(pool)


def commits(answers: object) -> list[End]:
    assert isinstance(answers, list)
    return [
        End(half_id=a.half.half_id, nonce=a.half.nonce, decision=Resolution.COMMIT)
        for a in answers
        if isinstance(a, Prepared)
    ]


async def wal_bytes(pool: Pool) -> int:
    """Return what the server has written since it was made."""
    async with pool.connection() as connection:
        cursor = await connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8")
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def test_a_cycle_writes_no_more_wal_than_its_limit(
    store: PostgresHalfStore, pool: Pool
) -> None:
    messages = [make_message(key=b"member-%d" % n, value=b"x" * 256) for n in range(FLUSH)]
    await store.end(commits(await store.prepare(messages)))
    async with pool.connection() as connection:
        await connection.execute("CHECKPOINT")
    for _ in range(4):
        await store.end(commits(await store.prepare(messages)))
    costs = []
    for _ in range(ROUNDS):
        before = await wal_bytes(pool)
        for _ in range(FLUSHES):
            await store.end(commits(await store.prepare(messages)))
        costs.append((await wal_bytes(pool) - before) / (FLUSHES * FLUSH))
    assert min(costs) <= WAL_BYTES_PER_CYCLE, costs


@pytest.mark.parametrize("decided", [False, True])
async def test_only_the_repeated_prepare_of_a_damaged_half_fails(
    store: PostgresHalfStore, pool: Pool, decided: bool
) -> None:
    """One stored form that cannot be read keeps no other caller of the flush waiting."""
    sound, broken = (make_message(transaction_id=name) for name in ("sound", "broken"))
    first, damaged = await store.prepare([sound, broken])
    if decided:
        await store.end(commits([damaged]))
    await damage(pool, damaged)
    new, again, refused = await store.prepare([make_message(), sound, broken])
    assert isinstance(new, Prepared)
    assert isinstance(first, Prepared)
    assert isinstance(again, Prepared)
    assert (again.half, again.replayed) == (first.half, True)
    assert isinstance(damaged, Prepared)
    assert refused == TransactionIdReused(
        existing_message_id=damaged.half.message_id, member="content"
    )


async def damage(pool: Pool, prepared: object) -> None:
    """Leave a half with the name of a header and no value."""
    assert isinstance(prepared, Prepared)
    given = {"half_id": prepared.half.half_id}
    async with pool.connection() as connection:
        cursor = await connection.execute(DAMAGE, given)
        assert cursor.rowcount == 1


async def test_an_acknowledged_half_survives_an_immediate_stop(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """G1: acknowledged messages are stored after PostgreSQL was killed."""
    from tests.fixtures_databases import make_database, make_template

    server = EmbeddedPostgres(tmp_path_factory.mktemp("crash"))
    server.start()
    try:
        url = make_database(server.database_url, make_template(server.database_url))
        async with make_pool(url, "test", pool_max=2) as pool:
            await store_group(pool, make_group())
            await store_topic(pool, "points-earned")
            store = PostgresHalfStore(pool)
            answers = list(await store.prepare([make_message()]))
            await store.end(commits(answers))
            server.kill()
            with pytest.raises(DatabaseUnavailable):
                await store.prepare([make_message()])
        server.start()
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT count(*) FROM outbox.half_message JOIN outbox.op_message USING (half_id)"
                " JOIN outbox.commit_log ON half_id = ANY (half_ids)"
            ).fetchone()
        assert row == (1,)
    finally:
        server.stop()
        server.erase()


async def test_a_read_only_database_is_unavailable_and_nothing_is_written(
    store: PostgresHalfStore, pool: Pool, database_url: str
) -> None:
    """P16."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        before = connection.execute("SELECT count(*) FROM outbox.half_message").fetchone()
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with make_pool(database_url, "test", pool_max=2) as fresh:
        with pytest.raises(DatabaseUnavailable):
            await PostgresHalfStore(fresh).prepare([make_message()])
    async with pool.connection() as other:
        cursor = await other.execute("SELECT count(*) FROM outbox.half_message")
        assert await cursor.fetchone() == before


async def test_halves_have_shards_in_use_alone_and_one_for_each_key(
    store: PostgresHalfStore, pool: Pool
) -> None:
    """Also the halves whose transaction id is claimed before their xid is known."""
    keys = [b"member-%d" % n for n in range(64)]
    plain = [make_message(key=key) for key in keys]
    named = [make_message(key=key, transaction_id=f"t-{key!r}") for key in keys]
    answers = await store.prepare([*plain, *named])
    shards = [shard_in(each.half.half_id) for each in answers if isinstance(each, Prepared)]
    async with pool.connection() as connection:
        cursor = await connection.execute("SELECT shards FROM outbox.installation")
        row = await cursor.fetchone()
    assert row is not None
    wanted = [shard_of("points-earned", key) % row[0] for key in keys]
    assert shards == [*wanted, *wanted]
    assert set(shards) == set(range(row[0]))
