"""The service with keys, and keys of any groups and scopes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from outbox.access import ALL_GROUPS, NewApiKey, Scope
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service, running, settings_for

PEPPER: Final = "a pepper for tests"
RING: Final = base64.b64encode(b"k" * 32).decode()
WITH_KEYS: Final = {"auth_mode": "keys", "auth_pepper": PEPPER, "encryption_keys": RING}

Header = dict[str, str]
ENDS = (
    "UPDATE outbox.api_key SET expires_at = clock_timestamp() + make_interval(secs => %s)"
    " WHERE key_id = %s"
)


@asynccontextmanager
async def guarded(database_url: str, **settings: Any) -> AsyncIterator[Service]:
    """Run the service with AUTH_MODE=keys."""
    async with running(settings_for(database_url, **WITH_KEYS, **settings)) as service:
        yield service


async def token(
    pool: Pool, *scopes: Scope, groups: tuple[str, ...] = (ALL_GROUPS,), lives: int | None = None
) -> Header:
    """Create a key that lives for so many seconds (None: for ever); return its header."""
    asked = NewApiKey(name="k", producer_groups=groups, scopes=scopes, expires_at=None)
    key, text = await PostgresApiKeys(pool, PEPPER.encode()).create(asked, None)
    if lives is not None:
        await select(pool, ENDS, lives, key.key_id)
    return {"Authorization": f"Bearer {text}"}
