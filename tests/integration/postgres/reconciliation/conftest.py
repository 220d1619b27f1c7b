"""Half messages for the tests of reconciliation."""

from __future__ import annotations

import pytest

from outbox.messages.message import End, HalfMessage, Prepared, Resolution
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_messages import make_group, make_message, store_group, store_topic


@pytest.fixture
async def halves(pool: Pool) -> list[HalfMessage]:
    """Three halves: one committed, one rolled back, one undecided."""
    group = await store_group(pool, make_group())
    topic_id = await store_topic(pool, "points")
    store = PostgresHalfStore(pool)
    messages = [make_message(group, topic="points", topic_id=topic_id) for _ in range(3)]
    stored = [a.half for a in await store.prepare(messages) if isinstance(a, Prepared)]
    for half, decision in zip(stored, (Resolution.COMMIT, Resolution.ROLLBACK), strict=False):
        await store.end([End(half_id=half.half_id, nonce=half.nonce, decision=decision)])
    return stored
