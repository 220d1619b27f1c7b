"""Invented keys cost no query; the others are verified by one query at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import pytest

from outbox.access import Scope
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES

pytestmark = pytest.mark.postgres

SECRET = "ab" * 32
WAITING: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database() AND query !~ 'bulk_action'
"""
"""Counts the queries of keys that wait; the worker of bulk actions looks for its keys by itself."""


def bearer(text: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {text}"}


@asynccontextmanager
async def keys_unreadable(pool: Pool) -> AsyncIterator[None]:
    """Let every query of a key wait for the block."""
    async with pool.connection() as holder, holder.transaction():
        await holder.execute("LOCK TABLE outbox.api_key IN ACCESS EXCLUSIVE MODE")
        yield


async def until_a_key_is_sought(pool: Pool) -> None:
    """Return once a query of a key waits."""
    async with asyncio.timeout(60):
        while (await select(pool, WAITING))[0][0] == 0:
            pass


async def test_a_forged_token_is_refused_without_a_query(database_url: str, pool: Pool) -> None:
    text = (await token(pool, Scope.ADMIN))["Authorization"].removeprefix("Bearer ")
    prefix, key_id, _, checksum = text.split("_")
    other_pepper = ApiKeyTokens(b"another pepper").issue(key_id, SECRET)
    async with guarded(database_url) as service, keys_unreadable(pool):
        for forged in (f"{prefix}_{key_id}_{SECRET}_{checksum}", other_pepper, "obx_", ""):
            answer = await service.client.get(HALVES, headers=bearer(forged))
            assert answer.status_code == 401


async def test_a_refusal_is_remembered(database_url: str, pool: Pool) -> None:
    async with guarded(database_url) as service:
        ended = await token(pool, Scope.ADMIN, lives=-1)
        assert (await service.client.get(HALVES, headers=ended)).status_code == 401
        async with keys_unreadable(pool):
            assert (await service.client.get(HALVES, headers=ended)).status_code == 401


async def test_one_verification_serves_everybody_and_every_spelling(
    database_url: str, pool: Pool
) -> None:
    headers = await token(pool, Scope.MESSAGES_READ)
    text = headers["Authorization"].removeprefix("Bearer ")
    async with guarded(database_url) as service:
        async with keys_unreadable(pool):
            asking = [
                asyncio.create_task(service.client.get(HALVES, headers=headers)) for _ in range(20)
            ]
            await until_a_key_is_sought(pool)
            assert (await select(pool, WAITING))[0][0] == 1
        assert {answer.status_code for answer in await asyncio.gather(*asking)} == {200}
        async with keys_unreadable(pool):
            for spelling in (f"bearer {text}", f"BEARER   {text}", f"Bearer {text} "):
                spelled = {"Authorization": spelling}
                assert (await service.client.get(HALVES, headers=spelled)).status_code == 200
