"""What an API does beside its requests goes on after an error, which is logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import LiteralString

import pytest
from structlog.testing import capture_logs

from outbox.postgres.sessions.connections import Pool
from outbox.telemetry.events import Event
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import TOPIC, running, settings_for

pytestmark = pytest.mark.postgres

SEEN: LiteralString = (
    "INSERT INTO outbox.topic (name, partitions, max_message_bytes, may_write)"
    " VALUES (%s, 3, 1000000, false)"
)
BREAK: tuple[LiteralString, ...] = (
    "ALTER TABLE outbox.topic RENAME TO whole_topic",
    "CREATE VIEW outbox.topic AS SELECT id, name, 1 / (id - id) AS partitions, max_message_bytes,"
    " may_write, compacted FROM outbox.whole_topic",
    "GRANT SELECT ON outbox.topic TO outbox_api",
)
REPAIR: tuple[LiteralString, ...] = (
    "DROP VIEW outbox.topic",
    "ALTER TABLE outbox.whole_topic RENAME TO topic",
)
LIVENESS_SECONDS = 60


async def looks() -> AsyncIterator[None]:
    """Yield now and then, and fail if nobody stops looking."""
    async with asyncio.timeout(LIVENESS_SECONDS):
        while True:
            yield
            await asyncio.sleep(0.1)


async def test_a_task_that_failed_is_logged_and_goes_on_when_its_cause_is_gone(
    database_url: str, pool: Pool
) -> None:
    """A reader of the stored topics gets an error that no program expects."""
    await select(pool, SEEN, TOPIC)
    for statement in BREAK:
        await select(pool, statement)
    with capture_logs() as lines:
        async with running(settings_for(database_url)) as service:
            failed = {"event": Event.INTERNAL_ERROR, "task": "topics"}
            async for _ in looks():
                if any(failed.items() <= line.items() for line in lines):
                    break
            for statement in REPAIR:
                await select(pool, statement)
            await service.put_group()
            async for _ in looks():
                answer = await service.prepare()
                if answer.status_code != 201:
                    break
    assert (answer.status_code, answer.json()["code"]) == (403, "topic-not-allowed")
