"""How long after the answer to its END does a `read_committed` consumer see a record?

Messages are prepared and committed one by one at a steady rate, over many connections; a request is
sent at its time, whether or not earlier ones have been answered. The time from the answer to the
arrival is a message's latency. CPU time is per message and process, and transactions are counted by
the numbers of the relay's batches. ``--shards`` repeats the series on new installations with these
numbers of shards in use, which only a benchmark may change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, Message, TopicPartition

from benchmarks.load.http_load import Connection, batch_cycles, connect, half
from benchmarks.measure.cpu_time import cpu_seconds
from benchmarks.measure.machine import report, start
from benchmarks.speed.service import GROUP, TOPIC, outbox_dev, register
from outbox.messages.record import MESSAGE_ID
from outbox.postgres.sessions.connections import connect as connect_database

CONNECTIONS: Final = 64
WARM_RATE: Final = 300
WARM_SECONDS: Final = 5.0
PROCESSES: Final = ("api", "postgres", "checker", "kafka")
BATCHES: Final = "SELECT sum(batch_no)::int8 FROM outbox.progress WHERE name LIKE 'relay:%%'"
SETTLE_SECONDS: Final = 2.5
"""Longer than the relay's pause between two writes of its batch numbers."""
DRAIN_SECONDS: Final = 20.0


def main() -> None:
    """Run the benchmark; rates are messages per second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--shards", type=int, nargs="*", default=[])
    parser.add_argument("--size", type=int, default=256, help="bytes of each value")
    arguments = parser.parse_args()
    start("latency", value_bytes=arguments.size, seconds=arguments.seconds)
    for shards in arguments.shards or [None]:
        with outbox_dev() as running:
            use_shards(running["database_url"], shards)
            register(running["api_url"])
            rates(running, arguments, shards)


def rates(running: dict[str, Any], arguments: argparse.Namespace, shards: int | None) -> None:
    """Measure each rate on one service, after a moment of load that warms it up."""
    arrivals, value = Arrivals(running), "x" * arguments.size
    asyncio.run(
        batch_cycles(running["api_url"], 1, 1, 16, lambda n: half(GROUP, TOPIC, n, value))
    )  # creates the topic
    with arrivals.watched():
        asyncio.run(series(running, arrivals, WARM_RATE, WARM_SECONDS, value))
        for rate in arguments.rates:
            figures = measure(running, arrivals, rate, arguments.seconds, value)
            report("END answered to visible", shards=shards, rate=rate, **figures)


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


def use_shards(database_url: str, shards: int | None) -> None:
    """Change the number of shards in use before the first message."""
    if shards is not None:
        with connect_database(database_url, "bench") as connection:
            connection.execute("UPDATE outbox.installation SET shards = %s", (shards,))


def measure(
    running: dict[str, Any], arrivals: Arrivals, rate: int, seconds: float, value: str
) -> dict[str, Any]:
    """Return latency percentiles (ms), transactions per second and CPU microseconds a message."""
    began, cpu, batches = time.perf_counter(), _cpu(running), _batches(running)
    answered, failures = asyncio.run(series(running, arrivals, rate, seconds, value))
    elapsed = time.perf_counter() - began
    spent = {name: used - cpu[name] for name, used in _cpu(running).items()}
    threading.Event().wait(SETTLE_SECONDS)
    waits = sorted(max(0.0, arrivals.at[each] - at) for each, at in answered.items())
    return {
        "messages": len(waits),
        "failures": failures,
        **{f"p{p}_ms": _percentile(waits, p) for p in (50, 90, 99, 99.9)},
        "transactions_per_second": round((_batches(running) - batches) / elapsed, 1),
        **{f"{name}_us": round(used / len(waits) * 1e6) for name, used in spent.items()},
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


def _cpu(running: dict[str, Any]) -> dict[str, float]:
    return {name: cpu_seconds(running["pids"][name]) for name in PROCESSES}


def _batches(running: dict[str, Any]) -> int:
    with connect_database(running["database_url"], "bench") as connection:
        row = connection.execute(BATCHES).fetchone()
    return int(row[0] or 0) if row else 0


if __name__ == "__main__":
    main()
