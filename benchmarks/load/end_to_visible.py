"""How long after the answer to its END does a `read_committed` consumer see a record?

Messages are prepared and committed one by one at a steady rate, over many connections; a request is
sent at its time, whether or not earlier ones have been answered. The time from the answer to the
arrival is a message's latency.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, Message, TopicPartition

from benchmarks.load.http_load import Connection, connect, half
from benchmarks.measure.cpu_time import Meter
from benchmarks.subjects.outbox_dev import GROUP, TOPIC
from outbox.messages.record import MESSAGE_ID

CONNECTIONS: Final = 64
PROCESSES: Final = ("api", "postgres", "checker", "kafka")
DRAIN_SECONDS: Final = 20.0


@dataclass(slots=True)
class Arrivals:
    """When a consumer saw each message, in seconds of the monotonic clock."""

    running: dict[str, Any]
    at: dict[str, float] = field(default_factory=dict)
    reading: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Read the topic's new records in a thread for the block."""
        thread = threading.Thread(target=self._read)
        thread.start()
        try:
            if not self.reading.wait(DRAIN_SECONDS):
                raise SystemExit("the consumer does not find its topic")
            yield
        finally:
            self.ended.set()
            thread.join()

    def wait_for(self, message_ids: Collection[str]) -> None:
        """Wait until the consumer has seen these messages; raises SystemExit if it does not."""
        deadline = time.monotonic() + DRAIN_SECONDS
        while not all(each in self.at for each in message_ids):
            if self.ended.wait(0.05) or time.monotonic() > deadline:
                raise SystemExit("records are missing")

    def _read(self) -> None:
        config = {
            "bootstrap.servers": self.running["kafka_bootstrap_servers"],
            "group.id": "latency",
            "isolation.level": "read_committed",
            "allow.auto.create.topics": True,
        }
        with closing(Consumer(config)) as consumer:
            consumer.assign(self._ends(consumer))
            self.reading.set()
            while not self.ended.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    self.at[_message_id(message)] = time.perf_counter()

    def _ends(self, consumer: Consumer) -> list[TopicPartition]:
        """Return the present end of each partition: what was sent before is not read."""
        places = [TopicPartition(TOPIC, n) for n in self._partitions(consumer)]
        for place in places:
            _, place.offset = consumer.get_watermark_offsets(place, timeout=30)
        return places

    def _partitions(self, consumer: Consumer) -> list[int]:
        while not self.ended.is_set():
            if known := consumer.list_topics(TOPIC, 10).topics[TOPIC].partitions:
                return sorted(known)
            self.ended.wait(0.1)
        return []


def _message_id(message: Message) -> str:
    return dict(message.headers() or ())[MESSAGE_ID].decode()  # type: ignore[union-attr]


def measure(
    running: dict[str, Any], arrivals: Arrivals, rate: int, seconds: float, value: str
) -> dict[str, Any]:
    """Return latency percentiles (ms) and the CPU microseconds a message of each server."""
    meter = Meter({name: running["pids"][name] for name in PROCESSES})
    with meter.measured() as cost:
        answered, failures = asyncio.run(series(running, arrivals, rate, seconds, value))
    waits = sorted(max(0.0, arrivals.at[each] - at) for each, at in answered.items())
    return {
        "messages": len(waits),
        "failures": failures,
        **{f"p{p}_ms": _percentile(waits, p) for p in (50, 90, 99)},
        "cpu_us": {name: used / len(waits) * 1e6 for name, used in cost.servers.items()},
    }


async def series(
    running: dict[str, Any], arrivals: Arrivals, rate: int, seconds: float, value: str
) -> tuple[dict[str, float], int]:
    """Prepare and commit at a rate; return when each END was answered, and the failures."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await connect(running["api_url"]))
    answered: dict[str, float] = {}
    began, count = time.perf_counter(), int(rate * seconds)
    failures = 0

    async def cycle(n: int) -> None:
        nonlocal failures
        await asyncio.sleep(max(0.0, began + n / rate - time.perf_counter()))
        connection = await free.get()
        body = json.dumps(half(GROUP, TOPIC, n, value)).encode()
        status, answer = await connection.post("/v1/half-messages", body)
        message_id = json.loads(answer)["message_id"] if status == 201 else ""
        path = f"/v1/half-messages/{message_id}/end"
        status, _ = await connection.post(path, b'{"decision":"COMMIT"}')
        if status == 200:
            answered[message_id] = time.perf_counter()
        failures += status != 200
        free.put_nowait(connection)

    await asyncio.gather(*(cycle(n) for n in range(count)))
    await asyncio.to_thread(arrivals.wait_for, answered)
    while not free.empty():
        free.get_nowait().close()
    return answered, failures


def _percentile(ordered: list[float], percent: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] * 1000, 1)
