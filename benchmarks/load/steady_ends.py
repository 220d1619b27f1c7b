"""Messages that are prepared and ended one by one at a fixed rate; the time of each END counts."""

from __future__ import annotations

import asyncio
import json
import time

from benchmarks.load.http_load import Connection, Load, connect, half
from benchmarks.speed.service import GROUP, TOPIC


async def ends(url: str, seconds: int, per_second: int) -> Load:
    """Prepare and end at a fixed rate; return how long each END took."""
    load, began = Load(), time.perf_counter()

    async def one(number: int) -> None:
        due = began + number / per_second
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        connection = await free.get()
        await prepare_and_end(connection, number, load)
        free.put_nowait(connection)

    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(16):
        free.put_nowait(await connect(url))
    await asyncio.gather(*(one(number) for number in range(seconds * per_second)))
    load.seconds, load.messages = time.perf_counter() - began, seconds * per_second
    return load


async def prepare_and_end(connection: Connection, number: int, load: Load) -> None:
    """Prepare a message, then time its END."""
    body = json.dumps(half(GROUP, TOPIC, number, "x" * 256)).encode()
    status, answer = await connection.post("/v1/half-messages", body)
    message_id = json.loads(answer)["message_id"] if status == 201 else ""
    began = time.perf_counter()
    path = f"/v1/half-messages/{message_id}/end"
    status, _ = await connection.post(path, b'{"decision":"COMMIT"}')
    load.latencies.append(time.perf_counter() - began)
    load.failures += status != 200
