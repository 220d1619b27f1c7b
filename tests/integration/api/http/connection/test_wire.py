"""The service as a separate process, for behaviour of a real server and real sockets."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from outbox.postgres.sessions.connections import Pool
from tests.fixtures_databases import drop_database, make_database
from tests.integration.api.fixtures_api_process import PROGRAM, Process, environment, served
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import CHECK_URL, GROUP, GROUPS, HALVES, prepare_body

pytestmark = pytest.mark.postgres

SECONDS = 300
together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(postgres_server: Any, template_database: str) -> AsyncIterator[Process]:
    """Yield one process for all tests that leave nothing behind; the last of them ends it."""
    url = make_database(postgres_server.database_url, template_database)
    async with served(url, seconds=SECONDS) as service:
        yield service
    drop_database(postgres_server.database_url, url)


async def test_the_service_speaks_http_and_stops_cleanly(database_url: str, pool: Pool) -> None:
    async with served(database_url) as service:
        client = service.client
        await client.put(f"{GROUPS}/{GROUP}", json={"check_url": CHECK_URL})
        prepared = await client.post(HALVES, json=prepare_body())
        assert prepared.status_code == 201
        ended = await client.post(
            f"{prepared.headers['location']}/end", json={"decision": "COMMIT"}
        )
        assert ended.status_code == 200
        many = [client.post(HALVES, json=prepare_body()) for _ in range(50)]
        assert {answer.status_code for answer in await asyncio.gather(*many)} == {201}
        assert await service.stop() == 0
    assert await stored(pool) == (51, 1, 0, 1)


async def test_a_stop_answers_the_end_that_still_waits(database_url: str) -> None:
    async with served(database_url) as service:
        client = service.client
        await client.put(f"{GROUPS}/{GROUP}", json={"check_url": CHECK_URL})
        prepared = await client.post(HALVES, json=prepare_body())
        at = prepared.headers["location"]
        waiting = asyncio.create_task(
            client.post(f"{at}/end", json={"decision": "COMMIT"}, headers={"Prefer": "wait=3"})
        )
        while (await client.get(at)).json()["state"] == "PREPARED":
            pass
        assert await service.stop() == 0
        answer = await waiting
        assert (answer.status_code, answer.json()["state"]) == (200, "COMMITTED")


@together
async def test_invalid_http_gets_a_problem_and_the_connection_closes(shared: Process) -> None:
    head, _, body = (await shared.raw(b"NONSENSE\r\n\r\n")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    problem = json.loads(body)
    assert problem["code"] == "malformed-request"
    assert f"x-request-id: {problem['request_id']}\r\n".encode() in head + b"\r\n"
    again = await shared.raw(b"NONSENSE\r\n\r\n")
    assert problem["request_id"].encode() not in again


@together
async def test_an_endless_head_is_refused(shared: Process) -> None:
    head = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n" + b"x-filler: " + b"f" * 200_000
    answer = await shared.raw(head)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
    moderate = (
        b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-filler: " + b"f" * 20_000
    )
    answer = await shared.raw(moderate + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431 ")


@together
async def test_a_head_that_does_not_end_within_ten_seconds_is_closed(shared: Process) -> None:
    answer = await shared.raw(b"GET /livez HTTP/1.1\r\nhost:")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"request-timeout" in answer


@together
async def test_fifty_megabytes_are_refused_by_their_declared_length(shared: Process) -> None:
    head = (
        f"POST {HALVES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "content-length: 52428800\r\n\r\n"
    )
    answer = await shared.raw(head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"payload-too-large" in answer


async def test_an_address_in_use_is_one_line_and_exit_2(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            "--bind",
            f"127.0.0.1:{taken.getsockname()[1]}",
            env=environment(database_url),
            stderr=asyncio.subprocess.PIPE,
        )
        _, error = await process.communicate()
    assert process.returncode == 2
    assert b"--bind" in error
    assert error.count(b"\n") == 1


@together
async def test_ctrl_c_exits_130(shared: Process) -> None:
    assert await shared.stop(signal.SIGINT) == 130
