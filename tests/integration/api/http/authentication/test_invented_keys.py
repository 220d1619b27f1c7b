"""Invented keys cost no query, and a refusal is remembered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from outbox.access import Scope
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_service import HALVES

pytestmark = pytest.mark.postgres

SECRET = "ab" * 32


def bearer(text: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {text}"}


@asynccontextmanager
async def keys_unreadable(pool: Pool) -> AsyncIterator[None]:
    """Let every query of a key wait for the block."""
    async with pool.connection() as holder, holder.transaction():
        await holder.execute("LOCK TABLE outbox.api_key IN ACCESS EXCLUSIVE MODE")
        yield


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
