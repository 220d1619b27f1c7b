"""What people and monitors ask often reads what is open, whatever the history has grown to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from benchmarks.load.committed import register
from benchmarks.load.history import (
    check_all,
    commit_flushes,
    publish_history,
    report_reads,
    tuples_read,
)
from devservers.postgres import EmbeddedPostgres
from outbox.errors import GroupInUse
from outbox.messages.message import State
from outbox.messages.message_id import parse_message_id
from outbox.operators.message_view import MessageFilter
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.operators.candidates import SLICE_ROWS
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.sessions.connections import Pool, connect, make_pool
from tests.fixtures_databases import drop_database, make_database

pytestmark = pytest.mark.postgres

HISTORY = 200_000
UNPUBLISHED = 3
BACKLOG = 20_000
MOST_OF_A_PAGE = 16 * SLICE_ROWS
"""A slice with the decision, the position and the status of each of its messages."""
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


@pytest.fixture(scope="module")
def stuck_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield a database of which only the oldest part is published: its relays have stopped."""
    url = make_database(postgres_server.database_url, template_database)
    with connect(url, "test") as session:
        busy = register(session, "invoices", "billing")
        free = publish_history(session, busy.producer_group_id, busy.topic_id, 2_000)
        backlog = range(free, free + BACKLOG)
        commit_flushes(session, busy.producer_group_id, busy.topic_id, backlog)
        check_all(session, busy.producer_group_id, backlog[-1])
        report_reads(session)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def stuck_pool(stuck_database: str) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that its statistics are complete."""
    async with make_pool(stuck_database, "test", pool_max=1) as opened:
        yield opened


@pytest.mark.deep
async def test_a_long_backlog_is_listed_in_slices_and_whole(stuck_pool: Pool) -> None:
    browser = PostgresMessageBrowser(stuck_pool)
    wanted, listed = MessageFilter(state=State.COMMITTED, limit=BACKLOG), list[int]()
    while True:
        before = await tuples_read(stuck_pool)
        page = await browser.page(wanted)
        assert await tuples_read(stuck_pool) - before <= MOST_OF_A_PAGE
        listed += [parse_message_id(each.message_id)[0] for each in page.data]
        if page.next_before is None:
            break
        wanted = replace(wanted, before=page.next_before)
    assert listed == sorted(set(listed), reverse=True)
    assert len(listed) == BACKLOG


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


@pytest.mark.parametrize("state", [State.ROLLED_BACK, State.PUBLISHED])
async def test_a_list_of_ended_messages_reads_one_slice(old_pool: Pool, state: State) -> None:
    browser = PostgresMessageBrowser(old_pool)
    before = await tuples_read(old_pool)
    await browser.page(MessageFilter(state=state))
    read = await tuples_read(old_pool) - before
    assert read <= 4 * SLICE_ROWS + MOST_TUPLES, "ids twice, rows and decisions once"


async def test_the_deletion_of_a_group_reads_what_is_unfinished(old_pool: Pool) -> None:
    groups = PostgresProducerGroups(old_pool, key_ring(None, insecure=True))
    before = await tuples_read(old_pool)
    with pytest.raises(GroupInUse):
        await groups.delete("billing", None, None)
    await groups.delete("idle", None, None)
    read = await tuples_read(old_pool) - before
    assert read <= MOST_TUPLES
