"""Producers that load a service with every kind of message and end, from a seed.

Of twenty halves, thirteen are committed by their producer, five are rolled back, one is ended with
UNKNOWN and one is not ended; the checks of the last two get COMMIT, ROLLBACK or UNKNOWN. Keys are
many, few or none; values are empty, small, large or null; some messages name a partition.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as PipeConnection
from random import Random
from typing import Any, Final

from benchmarks.load.http_load import Connection, connect

ENDS: Final = ("COMMIT",) * 13 + ("ROLLBACK",) * 5 + ("UNKNOWN", None)
SIZES: Final = (0, 16, 256, 256, 256, 4096)
PARTITIONS: Final = 4
REST_SECONDS: Final = 0.5
"""The pause of a producer after a refusal."""


@dataclass(kw_only=True)
class Producers:
    """The work of a process of producers until its stop command, and its counts."""

    url: str
    group: str
    topics: Sequence[str]
    seed: int
    sizes: Sequence[int] = (200, 20, 1, 1, 1, 1)
    """The batch size of each producer."""
    per_second: int = 0
    """The maximum rate of all producers together; 0 is no limit."""
    sent: Counter[str] = field(default_factory=Counter)
    _began: float = 0.0
    _stopping: bool = False

    def run(self, commands: PipeConnection, cores: Collection[int]) -> None:
        """Send until a command arrives, end what has begun, return the counts."""
        os.sched_setaffinity(0, cores)
        self._began = time.monotonic()
        asyncio.run(self._run(commands))
        commands.send(self.sent)

    async def _run(self, commands: PipeConnection) -> None:
        producing = [self._produce(*each) for each in enumerate(self.sizes)]
        await asyncio.gather(self._listen(commands), *producing)

    async def _listen(self, commands: PipeConnection) -> None:
        await asyncio.to_thread(commands.recv)
        self._stopping = True

    async def _produce(self, number: int, size: int) -> None:
        chance = Random(f"{self.seed}-{number}")
        connection = await connect(self.url)
        while not self._stopping:
            items = [self._half(chance) for _ in range(size)]
            well = await self._cycle(connection, chance, items)
            await asyncio.sleep(max(self._early(), 0.0 if well else REST_SECONDS))
        connection.close()

    def _early(self) -> float:
        """Return by how many seconds the sending is ahead of the limit."""
        sent, passed = self.sent["prepared"], time.monotonic() - self._began
        return max(0.0, sent / self.per_second - passed) if self.per_second else 0.0

    async def _cycle(
        self, connection: Connection, chance: Random, items: list[dict[str, Any]]
    ) -> bool:
        """Prepare messages and end them; return whether nothing was refused."""
        prepared = await self._post(connection, "half-messages/batch", items)
        ids = [each["result"]["message_id"] for each in prepared if each["status"] == 201]
        self.sent["prepared"] += len(ids)
        decided = [(message_id, chance.choice(ENDS)) for message_id in ids]
        ends = [{"message_id": each, "decision": end} for each, end in decided if end]
        answers = await self._post(connection, "half-messages/end-batch", ends) if ends else []
        for end, answer in zip(ends, answers, strict=True):
            self.sent[end["decision"] if answer["status"] == 200 else "refused"] += 1
        self.sent["refused"] += len(items) - len(ids)
        return len(ids) == len(items)

    async def _post(
        self, connection: Connection, path: str, items: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Send one batch; if the whole batch is refused, each of its items counts as refused."""
        body = json.dumps({"items": items}).encode()
        status, answer = await connection.post(f"/v1/{path}", body)
        if status not in (200, 201, 207):
            return [{"status": status}] * len(items)
        found: list[dict[str, Any]] = json.loads(answer)["items"]
        return found

    def _half(self, chance: Random) -> dict[str, Any]:
        size = chance.choice(SIZES)
        made: dict[str, Any] = {
            "producer_group": self.group,
            "topic": chance.choice(self.topics),
            "value": None if chance.random() < 0.02 else "x" * size,
        }
        if chance.random() < 0.9:
            few = chance.random() < 0.2
            made["key"] = f"key-{chance.randrange(10 if few else 10_000)}"
        if chance.random() < 0.05:
            made["partition"] = chance.randrange(PARTITIONS)
        if chance.random() < 0.2:
            made["headers"] = {"tenant": chance.choice(("north", "south"))}
        return made


@dataclass(kw_only=True)
class Traffic:
    """Producers over one service in a separate process, so that they do not use the audit's GIL."""

    producers: Producers
    cores: Collection[int]
    """The cores on which they run."""
    sent: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @contextmanager
    def flowing(self, seconds: float = 0.0) -> Iterator[None]:
        """Send while the block lasts, and for so long; then each ends what it has begun."""
        began = time.monotonic()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=self.producers.run, args=(theirs, self.cores))
        process.start()
        theirs.close()
        try:
            yield
            process.join(seconds)
        finally:
            ours.send("stop")
            self.sent += ours.recv()
            process.join()
            self.seconds += time.monotonic() - began

    def summary(self) -> dict[str, Any]:
        """Return the counts of sent and answered messages."""
        rate = round(self.sent["prepared"] / self.seconds)
        return {"seconds": round(self.seconds), "prepared_per_second": rate, **self.sent}
