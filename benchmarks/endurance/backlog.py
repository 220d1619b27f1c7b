"""What happens when Kafka is away for long while producers go on?

Kafka is stopped for ``--minutes``. Producers prepare and commit batches all the time, at
``--per-second`` or as fast as they can (0), then until Kafka is back. A `read_committed` consumer
counts what arrives and judges the order of each key. Exit code 1 unless nothing was refused, every
message arrived once and in order, the backlog was drained at twice the rate at which messages came,
and the programs' memory stayed flat. The service is a real ``outbox dev``; half an hour at full
rate needs about 40 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.comparison.installation import drained
from benchmarks.load.steady_batches import KeyOrder, SteadyBatches
from benchmarks.measure.cpu_time import resident_megabytes
from benchmarks.measure.machine import report, start
from benchmarks.measure.pause import end_in_order
from benchmarks.speed.service import GROUP, outbox_dev, register

TOPIC: Final = "backlog"
WARM_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.2
STOP_SECONDS: Final = 60.0
DRAIN_LIMIT: Final = 4.0
"""The time for the drain, as a multiple of the outage; at least a minute."""
TWICE: Final = 2.0
FLAT: Final = 1.1
PROGRAMS: Final = ("api", "checker")


@dataclass(slots=True)
class Reader:
    """A consumer in a thread, which judges the topic from its beginning."""

    bootstrap_servers: str
    order: KeyOrder = field(default_factory=KeyOrder)
    ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read for the block."""
        thread = threading.Thread(target=self._read)
        thread.start()
        try:
            yield
        finally:
            self.ended.set()
            thread.join()

    def _read(self) -> None:
        config = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": "backlog",
            "isolation.level": "read_committed",
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        with closing(Consumer(config)) as consumer:
            partitions = consumer.list_topics(TOPIC, 30).topics[TOPIC].partitions
            consumer.assign([TopicPartition(TOPIC, n, 0) for n in partitions])
            while not self.ended.is_set():
                for message in consumer.consume(1000, 0.1):
                    key, value = message.key(), message.value()
                    if message.error() is None and isinstance(key, bytes) and value is not None:
                        self.order.take(key, bytes(value))


def main() -> int:
    """Run the benchmark; return 1 if a promise was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="Kafka is away so long")
    parser.add_argument("--per-second", type=int, default=0, help="messages; 0: full rate")
    asked = parser.parse_args()
    end_in_order()
    with outbox_dev() as running:
        start("backlog", minutes=asked.minutes, per_second=asked.per_second or "full")
        register(running["api_url"])
        return asyncio.run(outage(running, asked.minutes * 60, asked.per_second))


async def outage(running: dict[str, Any], seconds: float, per_second: int) -> int:
    """Stop Kafka under load, start it again, drain; judge and report."""
    load = SteadyBatches(running["api_url"], GROUP, TOPIC, per_second)
    reader = Reader(running["kafka_bootstrap_servers"])
    sending = asyncio.create_task(load.run())
    await asyncio.sleep(WARM_SECONDS)
    with reader.reading():
        with kafka_away(running):
            began, before = time.perf_counter(), load.committed
            memory = await watched(running, seconds)
            incoming = (load.committed - before) / (time.perf_counter() - began)
        if not per_second:
            load.stopped.set()
        drain = await drained_by(load, reader.order, max(60.0, seconds * DRAIN_LIMIT))
        load.stopped.set()
        await sending
        await asyncio.to_thread(drained, running["api_url"])
        published = load.committed
        await asyncio.to_thread(wait_until, lambda: reader.order.records >= published, STOP_SECONDS)
    return judged(load, reader.order, incoming, drain, memory)


def judged(
    load: SteadyBatches,
    order: KeyOrder,
    incoming: float,
    drain: dict[str, float],
    memory: dict[str, list[int]],
) -> int:
    """Report everything; return 1 if a promise was not kept."""
    growth = {name: round(found[-1] / found[0], 3) for name, found in memory.items()}
    kept = {
        "nothing_refused": load.refused == 0,
        "each_once": order.records == load.committed,
        "order_kept": order.out_of_order == 0,
        "drained_at_twice": drain["per_second"] >= TWICE * incoming,
        "memory_flat": all(each <= FLAT for each in growth.values()),
    }
    figures = {"committed": load.committed, "refused": load.refused, "records": order.records,
               "out_of_order": order.out_of_order, "statuses": sorted(load.statuses)}  # fmt: skip
    report("load", incoming_per_second=round(incoming), **figures)
    report("drain", **{name: round(each, 1) for name, each in drain.items()})
    peaks = {f"{name}_peak_mb": max(found) for name, found in memory.items()}
    report("memory", **{f"{name}_growth": each for name, each in growth.items()}, **peaks)
    report("verdict", **kept)
    return 0 if all(kept.values()) else 1


async def watched(running: dict[str, Any], seconds: float) -> dict[str, list[int]]:
    """Wait; return the resident memory of each program (MB), from the first tenth on."""
    samples: dict[str, list[int]] = {name: [] for name in PROGRAMS}
    begin = time.perf_counter() + seconds / 10
    while time.perf_counter() < begin + seconds * 0.9:
        await asyncio.sleep(min(1.0, seconds / 20))
        if time.perf_counter() >= begin:
            for name, found in samples.items():
                found.append(resident_megabytes(running["pids"][name]))
    return samples


async def drained_by(load: SteadyBatches, order: KeyOrder, limit: float) -> dict[str, float]:
    """Wait until less than a second of load is unpublished; return seconds and rate.

    The rate counts from the first record: how long Kafka starts is not the relay's.
    """
    began, known = time.perf_counter(), order.records
    await asyncio.to_thread(wait_until, lambda: order.records > known, limit)
    first, from_here = time.perf_counter(), order.records
    rest = load.per_second or 1
    await asyncio.to_thread(wait_until, lambda: load.committed - order.records < rest, limit)
    seconds = max(time.perf_counter() - first, LOOK_SECONDS)
    rate = (order.records - from_here) / seconds
    return {"until_first_record_s": first - began, "drain_s": seconds, "per_second": rate}


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition is met, or so long; return whether it is met."""
    deadline = time.perf_counter() + seconds
    while not done() and time.perf_counter() < deadline:
        threading.Event().wait(LOOK_SECONDS)
    return done()


@contextmanager
def kafka_away(running: dict[str, Any]) -> Iterator[None]:
    """Stop Kafka in order for the block; its supervisor, paused meanwhile, then restarts it."""
    place = running["kafka_bootstrap_servers"].split(":")
    os.kill(running["supervisor"], signal.SIGSTOP)
    try:
        os.kill(running["pids"]["kafka"], signal.SIGTERM)
        if not wait_until(lambda: not answers(place[0], int(place[1])), STOP_SECONDS):
            raise SystemExit("Kafka does not stop")
        yield
    finally:
        os.kill(running["supervisor"], signal.SIGCONT)


def answers(host: str, port: int) -> bool:
    """Return whether a server accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


if __name__ == "__main__":
    raise SystemExit(main())
