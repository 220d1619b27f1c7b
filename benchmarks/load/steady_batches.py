"""Producers that send batches at a rate or as fast as they can, each with keys of its own.

So the order of a key is the order in which one producer has committed, and each value begins with
its number: a reader can judge what it gets.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.load.http_load import Connection, connect

PRODUCERS: Final = 4
KEYS_EACH: Final = 250
BATCH: Final = 500
PADDING: Final = "x" * 240


@dataclass(slots=True)
class SteadyBatches:
    """The load of one installation; ``per_second`` 0 is as fast as the answers come."""

    url: str
    group: str
    topic: str
    per_second: int
    committed: int = 0
    refused: int = 0
    statuses: set[int] = field(default_factory=set)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Send until stopped."""
        await asyncio.gather(*(self._producer(number) for number in range(PRODUCERS)))

    async def _producer(self, producer: int) -> None:
        connection, sent, began = await connect(self.url), 0, time.perf_counter()
        while not self.stopped.is_set():
            await self._batch(connection, producer, sent)
            sent += BATCH
            if self.per_second:
                due = began + sent * PRODUCERS / self.per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
        connection.close()

    async def _batch(self, connection: Connection, producer: int, first: int) -> None:
        items = [self._message(producer, n) for n in range(first, first + BATCH)]
        prepared = await self._posted(connection, "/v1/half-messages/batch", items)
        ids = [each["result"]["message_id"] for each in prepared if each["status"] == 201]
        ends = [{"message_id": each, "decision": "COMMIT"} for each in ids]
        ended = await self._posted(connection, "/v1/half-messages/end-batch", ends)
        committed = sum(each["status"] == 200 for each in ended)
        self.committed += committed
        self.refused += BATCH - committed

    async def _posted(
        self, connection: Connection, path: str, items: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the answers of the items; none for a batch that was refused."""
        status, answer = await connection.post(path, json.dumps({"items": items}).encode())
        self.statuses.add(status)
        found: list[dict[str, Any]] = json.loads(answer).get("items", [])
        return found

    def _message(self, producer: int, n: int) -> dict[str, Any]:
        return {
            "producer_group": self.group,
            "topic": self.topic,
            "key": f"{producer}-{n % KEYS_EACH}",
            "value": f"{n:010d} {PADDING}",
        }


@dataclass(slots=True)
class KeyOrder:
    """Judges records as they come: each key's numbers must rise, and none may come twice."""

    records: int = 0
    out_of_order: int = 0
    _last: dict[bytes, int] = field(default_factory=dict)

    def take(self, key: bytes, value: bytes) -> None:
        """Judge one record."""
        number = int(value[:10])
        self.records += 1
        self.out_of_order += number <= self._last.get(key, -1)
        self._last[key] = max(number, self._last.get(key, -1))
