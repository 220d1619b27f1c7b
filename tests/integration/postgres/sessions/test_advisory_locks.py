"""Locks of tasks and of audits: what is frozen loses them, and rows stay where an audit reads."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from psycopg.conninfo import make_conninfo

from outbox.errors import DatabaseUnavailable
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.advisory_locks import PostgresAdvisoryLocks
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_databases import as_role

pytestmark = pytest.mark.postgres


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
