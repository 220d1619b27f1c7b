"""A stranger's role that has one of our advisory locks delays our programs and stops none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from outbox.errors import DatabaseUnavailable
from outbox.messages.message import End, Ended, Prepared, Resolution
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.advisory_locks import STRANGER_SECONDS, PostgresAdvisoryLocks
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_databases import as_role, migrate
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

pytestmark = pytest.mark.postgres

STRANGER = "outbox_publish"
"""One of our roles that may write nothing; any other role of the server counts the same."""


@pytest.fixture
def stranger(database_url: str) -> Iterator[psycopg.Connection]:
    """Yield a session of a role that has no right on any of our tables."""
    url = as_role(database_url, STRANGER)
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def api_pool(database_url: str) -> AsyncIterator[Pool]:
    """Yield connections of the API's role."""
    async with make_pool(as_role(database_url, "outbox_api"), "test", pool_max=4) as opened:
        yield opened


def seize(stranger: psycopg.Connection, kind: str, numbers: int | None = None) -> None:
    """Take the lock of this kind, or those of this kind and each number below a bound."""
    if numbers is None:
        stranger.execute("SELECT pg_advisory_lock(hashtext(%s))", [kind])
        return
    stranger.execute(
        "SELECT pg_advisory_lock(hashtext(%s), n) FROM generate_series(0, %s) AS n",
        [kind, numbers - 1],
    )


async def test_a_prepare_goes_on_and_so_does_an_end_in_sql_mode(
    api_pool: Pool, pool: Pool, stranger: psycopg.Connection
) -> None:
    group = await store_group(pool, make_group())
    topic_id = await store_topic(pool, "orders")
    message = make_message(group, topic_id=topic_id)
    async with pool.connection() as owner:
        await owner.execute("UPDATE outbox.installation SET plain_outbox = true")
        await owner.execute(
            "INSERT INTO outbox.plain_message (half_id, nonce, producer_group_id, topic_id)"
            " VALUES (outbox.current_xid() << 15, 5, %s, %s)",
            [group.id, topic_id],
        )
    seize(stranger, "outbox.begin_flush", 64)
    seize(stranger, "outbox.plain_outbox")
    store = PostgresHalfStore(api_pool)
    (prepared,) = await store.prepare([message])
    assert isinstance(prepared, Prepared)
    half = prepared.half
    (ended,) = await store.end(
        [End(half_id=half.half_id, nonce=half.nonce, decision=Resolution.COMMIT)]
    )
    assert isinstance(ended, Ended)
    async with pool.connection() as owner:
        cursor = await owner.execute("SELECT count(*) FROM outbox.plain_message")
        assert await cursor.fetchone() == (0,), "what was published before is admitted first"


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


async def test_a_task_of_the_checker_goes_on_after_ten_seconds(
    database_url: str, stranger: psycopg.Connection
) -> None:
    seize(stranger, "outbox.sweep", 1)
    clock = Hands()
    locks = PostgresAdvisoryLocks(as_role(database_url, "outbox_checker"), clock)
    async with locks.try_lock("sweep") as held:
        assert not held
    clock.seconds = STRANGER_SECONDS
    async with locks.try_lock("sweep") as held:
        assert held
    await locks.close()


async def test_a_task_goes_on_after_a_checker_that_is_frozen(database_url: str) -> None:
    """A minute is a second here. A process that is frozen does not beat, nor does its loop run."""
    url = as_role(database_url, "outbox_checker")
    quick = make_conninfo(url, options="-c idle_session_timeout=1s")
    one, other = PostgresAdvisoryLocks(quick, beat_seconds=0.2), PostgresAdvisoryLocks(url)
    async with one.try_lock("sweep"):
        for _ in range(3):
            await asyncio.sleep(0.6)
            async with other.try_lock("sweep") as held:
                assert not held, "it beats"
        time.sleep(1.5)  # noqa: ASYNC251, TID251
        assert await is_held_soon(other, "sweep")
    assert await is_held_soon(one, "topics"), "it goes on when it wakes"
    await one.close()
    await other.close()


async def is_held_soon(locks: PostgresAdvisoryLocks, kind: str) -> bool:
    """Return whether a lock is held within the time that a session needs to end or to begin."""
    for _ in range(500):
        with suppress(DatabaseUnavailable):
            async with locks.try_lock(kind) as held:
                if held:
                    return True
        await asyncio.sleep(0.02)
    return False


async def test_rows_without_a_leaf_get_one_while_a_stranger_has_the_lock_of_the_audits(
    database_url: str, pool: Pool, stranger: psycopg.Connection
) -> None:
    async with pool.connection() as owner:
        await owner.execute(
            "INSERT INTO outbox.commit_log"
            " SELECT 1, (outbox.watermark() >> 20) + 9 << 20, now(), '{1}', '{1}'"
        )
    seize(stranger, "outbox.audit", 1)
    async with make_pool(as_role(database_url, "outbox_checker"), "test", pool_max=2) as checker:
        leaves = PostgresPartitions(checker)
        assert await leaves.create_ahead(2) == 0
        assert not any((await leaves.default_rows()).values())


async def test_rows_keep_their_place_while_an_audit_may_read_them(
    database_url: str, pool: Pool
) -> None:
    async with pool.connection() as owner:
        await owner.execute(
            "INSERT INTO outbox.commit_log"
            " SELECT 1, (outbox.watermark() >> 20) + 9 << 20, now(), '{1}', '{1}'"
        )
    async with make_pool(as_role(database_url, "outbox_checker"), "test", pool_max=2) as checker:
        with PostgresSource(as_role(database_url, "outbox_reconcile")).snapshot():
            await PostgresPartitions(checker).create_ahead(2)
            assert (await PostgresPartitions(checker).default_rows())["commit_log"]


def test_migrate_up_ends(database_url: str, stranger: psycopg.Connection) -> None:
    seize(stranger, "outbox.migrate")
    migrate(database_url)
