"""A search among very many open messages looks at a bounded part, says how far, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, LiteralString

import pytest

from benchmarks.load.committed import register
from benchmarks.load.history import report_reads, tuples_read
from devservers.postgres import EmbeddedPostgres
from outbox.messages.message import State
from outbox.messages.message_id import parse_message_id
from outbox.operators.message_view import MessageFilter
from outbox.postgres.operators.candidates import SLICE_ROWS
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.sessions.connections import connect, make_pool
from tests.fixtures_databases import drop_database, make_database

pytestmark = pytest.mark.postgres

OPEN: Final = 59_997
UNSWEPT: Final = 1_000
TAGGED: Final = 3
MOST_OF_A_PAGE: Final = 5 * SLICE_ROWS
"""A slice, with each message and its parking, and once more the slice to see where it ends."""
_FILL: Final[tuple[LiteralString, ...]] = (
    "CREATE TEMPORARY TABLE made AS SELECT n, (first + n) << 15 AS half_id, now() AS at,"
    " CASE WHEN n % ({open} / {tagged}) = 0 THEN ARRAY['wanted'] END AS tags"
    " FROM (SELECT outbox.watermark() AS first) w, generate_series(0, {open} - 1) n",
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id, tags)"
    " SELECT half_id, n, at, n, {group}, {topic}, tags FROM made",
    "INSERT INTO outbox.check_queue (producer_group_id, delay_seconds, id, half_id, age_from,"
    " due_at) SELECT {group}, 30, half_id, half_id, at, at FROM made WHERE n < {open} - {unswept}",
    "INSERT INTO outbox.check_class (producer_group_id, delay_seconds) VALUES ({group}, 30)",
    "INSERT INTO outbox.progress (name, position) SELECT 'sweep', max(half_id) FROM made"
    " WHERE n < {open} - {unswept} ON CONFLICT (name) DO UPDATE SET position = excluded.position",
    "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    " producer_group_id, topic_id, tags)"
    " SELECT half_id | 1, n, at, n, {group}, {topic}, tags FROM made",
    "INSERT INTO outbox.parked_message (half_id, producer_group_id, parked_at, parked_reason,"
    " check_count) SELECT half_id | 1, {group}, at, 'check_max', 15 FROM made",
)


@pytest.fixture(scope="module")
def open_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield a database with very many undecided and very many parked messages."""
    url = make_database(postgres_server.database_url, template_database)
    with connect(url, "test") as session:
        known = register(session, "invoices", "billing")
        ids = {"group": known.producer_group_id, "topic": known.topic_id}
        for statement in _FILL:
            session.execute(
                statement.format(open=OPEN, unswept=UNSWEPT, tagged=TAGGED, **ids).encode()
            )
        report_reads(session)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.mark.parametrize("state", [State.PREPARED, State.PARKED])
async def test_each_page_of_a_search_looks_at_a_slice_and_the_next_goes_on(
    open_database: str, state: State
) -> None:
    wanted, found, pages = MessageFilter(state=state, tag="wanted"), list[int](), 0
    async with make_pool(open_database, "test", pool_max=1) as pool:
        browser = PostgresMessageBrowser(pool)
        while True:
            before = await tuples_read(pool)
            page = await browser.page(wanted)
            assert await tuples_read(pool) - before <= MOST_OF_A_PAGE
            found += [parse_message_id(each.message_id)[0] for each in page.data]
            pages += 1
            if page.next_before is None:
                break
            assert page.searched_back_to is not None
            wanted = replace(wanted, before=page.next_before)
    assert found == sorted(set(found), reverse=True)
    assert len(found) == TAGGED
    assert pages > OPEN // SLICE_ROWS
