"""Prepares in an installation that has lived: a lost topic id, deleted groups."""

from __future__ import annotations

import asyncio

import pytest

from api.ingest import name_cache
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    GROUP,
    GROUPS,
    TOPIC,
    Service,
    running,
    settings_for,
)
from tests.integration.api.fixtures_sockets import LIVENESS_SECONDS

pytestmark = pytest.mark.postgres

GIVEN_AWAY = "UPDATE outbox.topic SET name = 'payments-' || id WHERE name = %s"
LAST_TOPIC = """
SELECT t.name FROM outbox.half_message h JOIN outbox.topic t ON t.id = h.topic_id
ORDER BY h.half_id DESC LIMIT 1
"""
BEGIN_FLUSH = "SELECT xid FROM outbox.begin_flush(ARRAY(SELECT id FROM outbox.producer_group))"
COPIED = """
INSERT INTO outbox.half_message (
    half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
SELECT %s, 1, clock_timestamp(), 1, (SELECT min(id) FROM outbox.producer_group), 1
"""


async def test_after_a_failover_that_lost_a_topics_id_its_messages_keep_their_topic(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new primary has given the lost id to another topic; this process has known it longer."""
    monkeypatch.setattr(name_cache, "FRESH_SECONDS", 0.0)
    async with running(settings_for(database_url)) as service:
        await service.put_group()
        await service.prepared_id()
        await select(pool, GIVEN_AWAY, TOPIC)
        await service.prepared_id()
    assert await select(pool, LAST_TOPIC) == [(TOPIC,)]


async def test_a_prepare_right_after_the_deletion_of_its_group_is_refused_by_every_process(
    database_url: str, pool: Pool
) -> None:
    settings = settings_for(database_url)
    async with running(settings) as one, running(settings) as other:
        await one.put_group()
        for service in (one, other):
            await service.end(await service.prepared_id(), "ROLLBACK")
        assert (await one.client.delete(f"{GROUPS}/{GROUP}")).status_code == 204
        refused = await other.prepare(transaction_id="t-1")
        assert (refused.status_code, refused.json().get("code")) == (404, "unknown-group")
        for table, rows in (("half_message", 2), ("transaction_key", 0)):
            stored = f"SELECT count(*) FROM outbox.{table}"
            assert await select(pool, stored) == [(rows,)]
        await one.put_group()
        async with asyncio.timeout(LIVENESS_SECONDS):
            while (await other.prepare(transaction_id="t-1")).status_code != 201:
                pass


async def test_a_deletion_waits_for_the_flush_that_stores_a_half_of_the_group(
    service: Service, pool: Pool
) -> None:
    await service.end(await service.prepared_id(), "ROLLBACK")
    async with pool.connection() as flush, flush.transaction():
        cursor = await flush.execute(BEGIN_FLUSH)
        [(xid,)] = await cursor.fetchall()
        await flush.execute(COPIED, [xid << 15])
        deletion = asyncio.create_task(service.client.delete(f"{GROUPS}/{GROUP}"))
        _, waiting = await asyncio.wait([deletion], timeout=0.5)
        assert waiting
    answer = await deletion
    assert answer.status_code == 409
    assert answer.json()["code"] == "group-in-use"
