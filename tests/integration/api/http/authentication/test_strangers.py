"""Callers without a key: public paths take no body, and no stranger takes a tenant's room."""

from __future__ import annotations

import asyncio

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import WAITING, select, until_a_session_waits
from tests.integration.api.fixtures_service import settings_for
from tests.integration.api.fixtures_sockets import listening, request

pytestmark = pytest.mark.postgres

PUBLIC = ("/livez", "/readyz", "/version", "/metrics", "/openapi.json", "/docs", "/problems/a")


async def test_a_public_path_answers_without_reading_a_body(
    database_url: str, subtests: pytest.Subtests
) -> None:
    async with listening(settings_for(database_url)) as listener:
        for path in PUBLIC:
            for method, status in (("POST", 405), ("PUT", 405), ("DELETE", 405), ("GET", 413)):
                for framing in ("content-length: 10", "transfer-encoding: chunked"):
                    with subtests.test(path, method=method, framing=framing):
                        wire = await listener.wire(request(method, path, framing))
                        answer = await wire.answer()
                        assert answer is not None
                        assert answer.status == status
                        assert (answer.headers.get("allow") == "get, head") is (status == 405)


@pytest.mark.parametrize(
    ("path", "kind"), [("/favicon.ico", "image/svg+xml"), ("/robots.txt", "text/plain")]
)
async def test_what_a_browser_asks_for_by_itself_needs_no_key(
    database_url: str, path: str, kind: str
) -> None:
    async with guarded(database_url) as service:
        answer = await service.client.get(path, headers={"authorization": ""})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)


async def test_probes_cost_the_same_however_many_strangers_ask(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group()
        async with pool.connection() as holder, holder.transaction():
            # Both probes read these; opening one more session for the prepare does not.
            await holder.execute("LOCK TABLE outbox.alembic_version, outbox.op_message")
            probes = [
                asyncio.create_task(service.client.get(path, headers={"authorization": ""}))
                for path in ("/readyz", "/metrics")
                for _ in range(50)
            ]
            await until_a_session_waits(pool)
            answer = await service.prepare()
            assert answer.status_code == 201, answer.text
            [(waiting,)] = await select(pool, WAITING)
            assert waiting <= 2
        answers = await asyncio.gather(*probes)
        assert {answer.status_code for answer in answers[50:]} == {200}
        assert len({answer.headers["x-request-id"] for answer in answers}) == 100
