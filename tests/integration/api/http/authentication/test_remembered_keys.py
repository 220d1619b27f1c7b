"""A key that is revoked elsewhere, or that expires, works for five more seconds and no longer."""

from __future__ import annotations

import asyncio
from typing import LiteralString

import pytest

from api.http.authentication.key_authenticator import CACHE_SECONDS, KeyAuthenticator
from api.http.problems import Problem
from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import PEPPER, token
from tests.integration.api.fixtures_rows import select, until_a_session_waits

pytestmark = pytest.mark.postgres

ENDS: dict[str, LiteralString] = {
    "revoked": "UPDATE outbox.api_key SET revoked_at = clock_timestamp() RETURNING 1",
    "expired": "UPDATE outbox.api_key SET expires_at = clock_timestamp() RETURNING 1",
    "bound": "UPDATE outbox.api_key SET producer_groups = '{mine}' RETURNING 1",
}


class SteppingClock(SystemClock):
    """A clock that the test moves on."""

    passed = 0.0

    def monotonic(self) -> float:
        """Return the time that the test has let pass."""
        return self.passed


@pytest.mark.parametrize("how", ENDS)
async def test_what_became_of_a_key_elsewhere_is_known_here_in_time(pool: Pool, how: str) -> None:
    clock = SteppingClock()
    header = (await token(pool, Scope.ADMIN, lives=3600))["Authorization"].encode()
    here = KeyAuthenticator(PostgresApiKeys(pool, PEPPER.encode()), clock)
    assert (await here.caller(header)).groups is None
    await select(pool, ENDS[how])
    clock.passed = CACHE_SECONDS - 0.1
    assert (await here.caller(header)).groups is None, "it is remembered, and costs no query"
    clock.passed = CACHE_SECONDS
    if how == "bound":
        assert (await here.caller(header)).groups == frozenset({"mine"})
        return
    with pytest.raises(Problem) as refused:
        await here.caller(header)
    assert refused.value.slug == "unauthenticated"


@pytest.mark.parametrize("lasted", [CACHE_SECONDS - 1, CACHE_SECONDS])
async def test_a_slow_verification_does_not_prolong_the_time(pool: Pool, lasted: float) -> None:
    clock = SteppingClock()
    header = (await token(pool, Scope.ADMIN))["Authorization"].encode()
    here = KeyAuthenticator(PostgresApiKeys(pool, PEPPER.encode()), clock)
    async with pool.connection() as holder, holder.transaction():
        await holder.execute("LOCK TABLE outbox.api_key IN SHARE MODE")  # its use is noted later
        verified = asyncio.create_task(here.caller(header))
        await until_a_session_waits(pool)
        await holder.execute(ENDS["revoked"])
        clock.passed = lasted
    if lasted < CACHE_SECONDS:
        assert (await verified).groups is None
    else:
        with pytest.raises(DatabaseUnavailable):
            await verified
    clock.passed = CACHE_SECONDS
    with pytest.raises(Problem):
        await here.caller(header)
