"""What people and monitors ask often reads what is open, whatever the history has grown to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from benchmarks.load.committed import register
from benchmarks.load.history import (
    commit_flushes,
    publish_history,
    report_reads,
    tuples_read,
)
from devservers.postgres import EmbeddedPostgres
from outbox.errors import GroupInUse
from outbox.messages.message import State
from outbox.operators.message_view import MessageFilter
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.sessions.connections import Pool, connect, make_pool
from tests.fixtures_databases import drop_database, make_database

pytestmark = pytest.mark.postgres

HISTORY = 200_000
UNPUBLISHED = 3
MOST_TUPLES = 1_000
"""Far above what a few groups, the positions and three open messages are."""


@pytest.fixture(scope="module")
def old_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield a database with a long history, and three commits that are not published yet."""
    url = make_database(postgres_server.database_url, template_database)
    with connect(url, "test") as session:
        busy, idle = register(session, "invoices", "billing"), register(session, "news", "idle")
        free = publish_history(session, busy.producer_group_id, busy.topic_id, HISTORY)
        publish = range(free, free + UNPUBLISHED)
        commit_flushes(session, busy.producer_group_id, busy.topic_id, publish)
        assert idle.producer_group_id != busy.producer_group_id
        report_reads(session)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def old_pool(old_database: str) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that its statistics are complete."""
    async with make_pool(old_database, "test", pool_max=1) as opened:
        yield opened


@pytest.mark.parametrize("state", [State.COMMITTED, State.PREPARED, State.PARKED])
async def test_a_list_of_a_state_reads_what_is_in_it(old_pool: Pool, state: State) -> None:
    browser = PostgresMessageBrowser(old_pool)
    before = await tuples_read(old_pool)
    page = await browser.page(MessageFilter(state=state))
    read = await tuples_read(old_pool) - before
    assert len(page.data) == (UNPUBLISHED if state is State.COMMITTED else 0)
    assert read <= MOST_TUPLES


async def test_the_deletion_of_a_group_reads_what_is_unfinished(old_pool: Pool) -> None:
    groups = PostgresProducerGroups(old_pool, key_ring(None, insecure=True))
    before = await tuples_read(old_pool)
    with pytest.raises(GroupInUse):
        await groups.delete("billing", None, None)
    await groups.delete("idle", None, None)
    read = await tuples_read(old_pool) - before
    assert read <= MOST_TUPLES
