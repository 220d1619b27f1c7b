"""Invented keys cost their sender: no query, or one at a time, and never a tenant's connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import LiteralString

import pytest

from api.http.authentication import key_authenticator, key_verifier
from api.http.authentication.key_authenticator import KeyAuthenticator
from api.http.problems import Problem
from outbox.access import ApiKey, Scope
from outbox.clock import SystemClock
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens, old_checksum
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import PEPPER, WITH_KEYS, guarded, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import GROUP, HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import LIVENESS_SECONDS, Answer, listening, request

pytestmark = pytest.mark.postgres

SECRET = "ab" * 32
WAITING: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database() AND query !~ 'bulk_action'
"""
"""Counts the queries of keys that wait; the worker of bulk actions looks for its keys by itself."""


def old_token(key_id: str, secret: str = SECRET) -> str:
    """Return a token of the older form, as anybody can write it."""
    return f"obx_{key_id}_{secret}_{old_checksum(key_id, secret)}"


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
        for forged in (f"{prefix}_{key_id}_{SECRET}_{checksum}", other_pepper, "obx2_", ""):
            answer = await service.client.get(HALVES, headers=bearer(forged))
            assert answer.status_code == 401


async def test_invented_tokens_of_the_older_form_hold_one_connection(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group()
        async with keys_unreadable(pool):
            invented = [bearer(old_token(f"{number:016x}")) for number in range(40)]
            asking = [
                asyncio.create_task(service.client.get(HALVES, headers=each)) for each in invented
            ]
            await until_a_key_is_sought(pool)
            assert (await service.prepare()).status_code == 201
            assert (await select(pool, WAITING))[0][0] == 1
        statuses = {answer.status_code for answer in await asyncio.gather(*asking)}
        assert statuses <= {401, 503}


async def test_a_valid_key_of_the_older_form_waits_for_few_queries_of_invented_ones(
    pool: Pool,
) -> None:
    text = (await token(pool, Scope.ADMIN))["Authorization"].removeprefix("Bearer ")
    _, key_id, secret, _ = text.split("_")
    authenticator = KeyAuthenticator(PostgresApiKeys(pool, PEPPER.encode()), SystemClock())
    before = pool.get_stats()["requests_num"]
    flood = [
        asyncio.create_task(authenticator.caller(b"Bearer " + old_token(f"{each:016x}").encode()))
        for each in range(2000)
    ]
    caller = await authenticator.caller(b"Bearer " + old_token(key_id, secret).encode())
    assert caller.key_id == key_id
    ended = await asyncio.gather(*flood, return_exceptions=True)
    assert {type(each) for each in ended} == {Problem}
    assert pool.get_stats()["requests_num"] - before < 10


async def test_few_invented_tokens_wait_and_no_tenant_is_refused_for_them(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WAIT_SECONDS", "CACHE_SECONDS"):  # nothing ends because of its time
        monkeypatch.setattr(key_authenticator, name, 3600)
    for name in ("QUERY_MAX", "WAITING_MAX"):
        monkeypatch.setattr(key_verifier, name, 5)
    known, unknown = await token(pool, Scope.ADMIN), await token(pool, Scope.ADMIN)
    settings = settings_for(database_url, **WITH_KEYS)
    async with listening(settings, headers=known) as listener:
        await listener.put_group(GROUP)
        async with keys_unreadable(pool):
            invented = [f"authorization: Bearer {old_token(f'{each:016x}')}" for each in range(40)]
            wires = [await listener.wire(request("GET", HALVES, each)) for each in invented]
            asking = [asyncio.create_task(wire.answer()) for wire in wires]
            early = await first_done(asking, 30)
            assert [answer.status for each in early if (answer := each.result())] == [503] * 30
            prepared = await listener.client.post(HALVES, json=prepare_body())
            assert prepared.status_code == 201
            late = asyncio.create_task(listener.client.get(HALVES, headers=unknown))
        assert (await late).status_code == 200
        others = {answer.status for answer in await asyncio.gather(*asking) if answer}
        assert others == {503, 401}


async def first_done(
    asking: Sequence[asyncio.Task[Answer | None]], number: int
) -> Sequence[asyncio.Task[Answer | None]]:
    """Return the first so many tasks that end, or those that end in time."""
    until, done = time.monotonic() + LIVENESS_SECONDS / 3, list[asyncio.Task[Answer | None]]()
    while len(done) < number and time.monotonic() < until:
        await asyncio.sleep(0.01)
        done = [each for each in asking if each.done()]
    return done[:number]


class CountingKeys(PostgresApiKeys):
    """Keeps the tokens that it was asked about."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, PEPPER.encode())
        self.asked = list[str]()

    async def verify(self, tokens: Sequence[str]) -> list[ApiKey | None]:
        """Verify, and keep the tokens."""
        self.asked += tokens
        return await super().verify(tokens)


async def test_a_token_is_asked_about_only_while_somebody_waits_for_it(pool: Pool) -> None:
    keys = CountingKeys(pool)
    authenticator = KeyAuthenticator(keys, SystemClock())
    first, last, *given_up = [old_token(f"{each:016x}") for each in range(50)]

    def ask(text: str) -> asyncio.Task[object]:
        return asyncio.create_task(authenticator.caller(f"Bearer {text}".encode()))

    async with keys_unreadable(pool):
        asking = [ask(first)]
        await until_a_key_is_sought(pool)
        leaving = [ask(each) for each in (last, *given_up, *given_up)]
        asking.append(ask(last))
        await asyncio.sleep(0)
        for each in leaving:
            each.cancel()
        await asyncio.wait(leaving)
    assert {type(each) for each in await asyncio.gather(*asking, return_exceptions=True)} == {
        Problem
    }
    assert keys.asked == [first, last]


async def test_a_refusal_is_remembered(database_url: str, pool: Pool) -> None:
    async with guarded(database_url) as service:
        invented = bearer(old_token("0" * 16))
        assert (await service.client.get(HALVES, headers=invented)).status_code == 401
        async with keys_unreadable(pool):
            for _ in range(10):
                assert (await service.client.get(HALVES, headers=invented)).status_code == 401


async def test_a_key_of_the_older_form_stays_valid(database_url: str, pool: Pool) -> None:
    text = (await token(pool, Scope.MESSAGES_READ))["Authorization"].removeprefix("Bearer ")
    _, key_id, secret, _ = text.split("_")
    async with guarded(database_url) as service:
        for form in (text, old_token(key_id, secret)):
            assert (await service.client.get(HALVES, headers=bearer(form))).status_code == 200


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


async def test_a_full_cache_loses_the_oldest_entry_and_nobody_else(pool: Pool) -> None:
    keys = PostgresApiKeys(pool, PEPPER.encode())
    authenticator = KeyAuthenticator(keys, SystemClock(), cache_max=3)
    tokens = [(await token(pool, Scope.ADMIN))["Authorization"].encode() for _ in range(4)]
    for each in tokens:
        await authenticator.caller(each)
    for number in range(10):
        with pytest.raises(Problem):
            await authenticator.caller(b"Bearer " + old_token(f"{number:016x}").encode())
    async with keys_unreadable(pool):
        callers = [await authenticator.caller(each) for each in tokens[1:]]
        assert len({caller.key_id for caller in callers}) == 3
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await authenticator.caller(tokens[0])


async def test_a_revocation_takes_one_key_out_of_the_cache(database_url: str, pool: Pool) -> None:
    async with guarded(database_url) as service:
        admin, other = await token(pool, Scope.ADMIN), await token(pool, Scope.MESSAGES_READ)
        assert (await service.client.get(HALVES, headers=other)).status_code == 200
        revoked = await token(pool, Scope.MESSAGES_READ)
        assert (await service.client.get(HALVES, headers=revoked)).status_code == 200
        key_id = revoked["Authorization"].split("_")[1]
        deleted = await service.client.delete(f"/v1/api-keys/{key_id}", headers=admin)
        assert deleted.status_code == 204
        assert (await service.client.get(HALVES, headers=revoked)).status_code == 401
        async with keys_unreadable(pool):
            assert (await service.client.get(HALVES, headers=other)).status_code == 200
