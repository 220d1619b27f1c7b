"""What waits while PostgreSQL stands still is bounded by tenant; what is refused may be repeated.

The sessions of the service are stopped as processes, so no limit of the server ends a statement.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from api import ingest_wiring, wiring
from api.http import admission
from api.http.authentication import key_authenticator
from outbox.access import Scope
from outbox.postgres.maintenance import gauges, readiness
from outbox.postgres.sessions import connections
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_frozen import frozen_postgres
from tests.integration.api.fixtures_keys import WITH_KEYS, Header, token
from tests.integration.api.fixtures_rows import select, until_a_session_waits
from tests.integration.api.fixtures_service import (
    GROUPS,
    HALVES,
    prepare_body,
    running,
    settings_for,
)
from tests.integration.api.fixtures_sockets import Answer, Listener, Wire, listening, request

pytestmark = pytest.mark.postgres

HOSTILE, QUIET = "hostile", "quiet"
SCOPES = (Scope.MESSAGES_WRITE, Scope.MESSAGES_END, Scope.MESSAGES_READ, Scope.REPORTS_READ)
SESSIONS = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'outbox-api'"
)
SMALL = {"database_pool_max": 2}
BATCH = 1000


@pytest.fixture(autouse=True)
def _verified_keys_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep keys for longer than a slow machine takes: without PostgreSQL none is verified."""
    monkeypatch.setattr(key_authenticator, "CACHE_SECONDS", 3600.0)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MEMORY_BYTES", 1_665_536)


@asynccontextmanager
async def two_tenants(
    database_url: str, pool: Pool
) -> AsyncIterator[tuple[Listener, Header, Header]]:
    """Serve two tenants with little room; yield the hostile one's key and the quiet one's."""
    admin = await token(pool, Scope.ADMIN)
    async with listening(settings_for(database_url, **WITH_KEYS, **SMALL)) as listener:
        for group in (HOSTILE, QUIET):
            body = {"check_url": "http://127.0.0.1:8999/check"}
            answer = await listener.client.put(f"{GROUPS}/{group}", json=body, headers=admin)
            assert answer.status_code == 201, answer.text
        hostile, quiet = [await token(pool, *SCOPES, groups=(each,)) for each in (HOSTILE, QUIET)]
        yield listener, hostile, quiet


@asynccontextmanager
async def standing_still(pool: Pool) -> AsyncIterator[None]:
    """Stop every session of the service for the block."""
    pids = [pid for (pid,) in await select(pool, SESSIONS)]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def prepared(listener: Listener, key: Header, group: str) -> str:
    """Prepare a message; return its id."""
    body = prepare_body(producer_group=group)
    answer = await listener.client.post(HALVES, json=body, headers=key)
    assert answer.status_code == 201, answer.text
    message_id: str = answer.json()["message_id"]
    return message_id


def post(path: str, key: Header, body: object) -> bytes:
    """Return the bytes of a request with a key."""
    field = f"authorization: {key['Authorization']}"
    return request("POST", path, field, body=json.dumps(body).encode())


async def first_answer(wires: list[Wire]) -> Answer | None:
    """Return the first answer on any of these connections."""
    answers = [asyncio.create_task(each.answer()) for each in wires]
    done, waiting = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    return done.pop().result()


def assert_refused_and_to_be_repeated(answer: Answer | None, code: str) -> None:
    assert answer is not None
    assert (answer.status, json.loads(answer.body)["code"]) == (503, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1


async def test_ends_whose_clients_come_and_go_wait_in_bounded_memory_of_their_tenant(
    database_url: str, pool: Pool
) -> None:
    async with two_tenants(database_url, pool) as (listener, hostile, quiet):
        own = await prepared(listener, quiet, QUIET)
        foreign = await prepared(listener, hostile, HOSTILE)
        item = {"message_id": foreign, "decision": "UNKNOWN"}
        flood = post(f"{HALVES}/end-batch", hostile, {"items": [item] * BATCH})
        async with standing_still(pool):
            for _ in range(3):
                (await listener.wire(flood)).writer.close()
            last = await listener.wire(
                post(f"{HALVES}/end-batch", hostile, {"items": [item] * BATCH})
            )
            refused = await last.answer()
            assert_refused_and_to_be_repeated(refused, "database-unavailable")
            wire = await listener.wire(post(f"{HALVES}/{own}/end", quiet, {"decision": "COMMIT"}))
            waits = asyncio.create_task(wire.answer())
            await asyncio.wait([waits], timeout=0.5)
            assert not waits.done()
        ended = await waits
        assert ended is not None
        assert (ended.status, json.loads(ended.body)["state"]) == (200, "COMMITTED")
        answer = await listener.client.post(
            f"{HALVES}/end-batch", json={"items": [item] * BATCH}, headers=hostile
        )
        assert answer.status_code == 207  # the places are free again


async def test_prepares_of_one_tenant_leave_places_in_the_queue_to_another(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_wiring, "WAITING_ROWS", 10)
    async with two_tenants(database_url, pool) as (listener, hostile, quiet):
        await prepared(listener, quiet, QUIET)
        await prepared(listener, hostile, HOSTILE)
        flood = post(HALVES, hostile, prepare_body(producer_group=HOSTILE))
        async with standing_still(pool):
            wires = [await listener.wire(flood) for _ in range(20)]
            assert_refused_and_to_be_repeated(await first_answer(wires), "overloaded")
            one = await listener.wire(post(HALVES, quiet, prepare_body(producer_group=QUIET)))
            waits = asyncio.create_task(one.answer())
            await asyncio.wait([waits], timeout=0.5)
            assert not waits.done()
        stored = await waits
        assert stored is not None
        assert stored.status == 201


async def test_slow_reads_of_one_tenant_leave_connections_of_the_database_to_prepares_and_ends(
    database_url: str, pool: Pool
) -> None:
    async with two_tenants(database_url, pool) as (listener, hostile, quiet):
        own = await prepared(listener, quiet, QUIET)
        read = request("GET", "/v1/audit-log", f"authorization: {hostile['Authorization']}")
        async with pool.connection() as holder, holder.transaction():
            await holder.execute("LOCK TABLE outbox.audit_log IN ACCESS EXCLUSIVE MODE")
            for _ in range(10):
                await listener.wire(read)
            await until_a_session_waits(pool)
            await prepared(listener, quiet, QUIET)
            ended = await listener.client.post(
                f"{HALVES}/{own}/end", json={"decision": "COMMIT"}, headers=quiet
            )
        assert (ended.status_code, ended.json()["state"]) == (200, "COMMITTED")


def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody wait for a moment only."""
    for module in (wiring, readiness, gauges):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    for name in ("WAIT_SECONDS", "CHECK_SECONDS"):
        monkeypatch.setattr(connections, name, 0.5)


async def test_while_postgresql_is_stopped_each_request_is_answered_and_afterwards_as_before(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_limits(monkeypatch)
    async with running(settings_for(database_url, database_pool_max=4)) as service:
        await service.put_group()
        own, client = await service.prepared_id(), service.client
        end = {"message_id": own, "decision": "COMMIT"}
        with frozen_postgres(database_url):
            async with asyncio.timeout(60):
                refused = await asyncio.gather(
                    service.prepare(),
                    service.end(own, "COMMIT"),
                    client.post(f"{HALVES}/batch", json={"items": [prepare_body()]}),
                    client.post(f"{HALVES}/end-batch", json={"items": [end]}),
                    client.get(HALVES),
                    client.get(f"{HALVES}/{own}"),
                    client.get(GROUPS),
                    client.post(f"{GROUPS}/billing/pause", json={"reason": "why"}),
                    client.get("/v1/audit-log"),
                )
                ready, page, live, metrics = await asyncio.gather(
                    *(client.get(path) for path in ("/readyz", "/ui", "/livez", "/metrics"))
                )
        for answer in refused:
            assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
            assert "unknown: repeat the same request" in answer.json()["detail"]
            assert int(answer.headers["retry-after"]) >= 1
        assert (ready.json()["code"], page.status_code) == ("not-ready", 503)
        assert (live.status_code, metrics.status_code) == (200, 200)
        async with asyncio.timeout(60):
            while (answer := await service.prepare()).status_code == 503:
                assert int(answer.headers["retry-after"]) >= 1
        assert answer.status_code == 201, answer.text
        assert (await service.end(own, "COMMIT")).status_code == 200
