"""A load client with little CPU cost: raw HTTP/1.1 over keep-alive connections.

A Python HTTP library would use more CPU than the service under test, and so measure itself.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(slots=True)
class Connection:
    """One keep-alive connection; one request at a time."""

    host: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def post(self, path: str, body: bytes, headers: str = "") -> tuple[int, bytes]:
        """Send one request and return status and body; each of ``headers`` ends its line."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
            f"{headers}Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return int(answer[9:12]), await self.reader.readexactly(length)

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


@dataclass(slots=True)
class Load:
    """The durations of a series of requests."""

    messages: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    failures: int = 0

    def percentiles(self) -> dict[str, float]:
        """Return the latency percentiles in milliseconds per cycle."""
        ordered = sorted(self.latencies)
        return {f"p{p}_ms": ordered[int(len(ordered) * p / 100)] * 1000 for p in (50, 99)}


async def connect(url: str) -> Connection:
    """Open a connection to the service."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 24)
    return Connection(host=parts.netloc, reader=reader, writer=writer)


def half(group: str, topic: str, n: int, value: str) -> dict[str, Any]:
    """Return one prepare request, with one of a thousand keys."""
    return {"producer_group": group, "topic": topic, "key": f"key-{n % 1000}", "value": value}


async def single_cycles(
    url: str, connections: int, cycles: int, make: Callable[[int], dict[str, Any]]
) -> Load:
    """Run prepare + COMMIT with single requests over parallel connections."""
    load, numbers = Load(), iter(range(cycles))

    async def worker() -> None:
        connection = await connect(url)
        for n in numbers:
            began = time.perf_counter()
            status, body = await connection.post("/v1/half-messages", json.dumps(make(n)).encode())
            message_id = json.loads(body)["message_id"] if status == 201 else ""
            path = f"/v1/half-messages/{message_id}/end"
            status, _ = await connection.post(path, b'{"decision":"COMMIT"}')
            load.failures += status != 200
            load.latencies.append(time.perf_counter() - began)
        connection.close()

    return await _timed(load, connections, worker, cycles)


async def batch_cycles(
    url: str, connections: int, batches: int, size: int, make: Callable[[int], dict[str, Any]]
) -> Load:
    """Run prepare + COMMIT in batches, ``size`` messages per request."""
    load, numbers = Load(), iter(range(batches))
    body = json.dumps({"items": [make(n) for n in range(size)]}).encode()

    async def worker() -> None:
        connection = await connect(url)
        for _ in numbers:
            began = time.perf_counter()
            _, answer = await connection.post("/v1/half-messages/batch", body)
            items = [
                {"message_id": item["result"]["message_id"], "decision": "COMMIT"}
                for item in json.loads(answer)["items"]
            ]
            _, answer = await connection.post(
                "/v1/half-messages/end-batch", json.dumps({"items": items}).encode()
            )
            load.failures += sum(item["status"] != 200 for item in json.loads(answer)["items"])
            load.latencies.append(time.perf_counter() - began)
        connection.close()

    return await _timed(load, connections, worker, batches * size)


async def _timed(load: Load, connections: int, worker: Callable[[], Any], messages: int) -> Load:
    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(connections)))
    load.seconds, load.messages = time.perf_counter() - began, messages
    return load
