"""A batch of eight mebibytes of nothing is refused; it costs other callers little."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import httpx2
import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_api_process import served
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, HALVES, prepare_body

pytestmark = pytest.mark.postgres

JSON = {"content-type": "application/json"}
EIGHT_MIB = 8 << 20
MEMORY_KIB = 256 << 10
EMPTY = b"{}," * (EIGHT_MIB // 3 - 10) + b"{}"
HOSTILE = {
    b'{"items":[' + EMPTY + b"]}": 413,
    b'{"items":[[' + EMPTY + b"]]}": 207,
}
"""Millions of items, and one item of millions of members."""


async def test_eight_mebibytes_of_objects_are_refused_while_ends_go_on(
    database_url: str, pool: Pool
) -> None:
    async with served(database_url) as api:
        group = {"check_url": "http://127.0.0.1:8999/check"}
        assert (await api.client.put(f"{GROUPS}/billing", json=group)).status_code == 201
        prepared = await api.client.post(HALVES, json=prepare_body())
        end = f"{HALVES}/{prepared.json()['message_id']}/end"
        sending = [asyncio.create_task(send(api.client, body)) for body in HOSTILE]
        slowest = 0.0
        while not all(task.done() for task in sending):
            began = await cpu_seconds(api.process.pid)
            answer = await api.client.post(end, json={"decision": "COMMIT"})
            slowest = max(slowest, await cpu_seconds(api.process.pid) - began)
            assert answer.status_code == 200
        assert [set(task.result()) for task in sending] == [{each} for each in HOSTILE.values()]
        assert slowest < 1, "what an END waits for is the CPU time of the service"
        status = await asyncio.to_thread(Path(f"/proc/{api.process.pid}/status").read_text)
        assert int(status.partition("VmHWM:")[2].split()[0]) < MEMORY_KIB
    assert (await stored(pool))[0] == 1


async def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, which other work on the machine does not change."""
    facts = await asyncio.to_thread(Path(f"/proc/{pid}/stat").read_text)
    user, system = facts.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def send(client: httpx2.AsyncClient, body: bytes) -> list[int]:
    """Send a body again and again; return the statuses of the answers."""
    answers = [await client.post(f"{HALVES}/batch", content=body, headers=JSON) for _ in range(5)]
    items = [each for answer in answers for each in answer.json().get("items", ())]
    assert {each["status"] for each in items} <= {413}
    return [answer.status_code for answer in answers]
