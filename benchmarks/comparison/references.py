"""What the parts reach alone: COPY, the transactional producer, the bare HTTP protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.comparison.plan import Plan, Row
from benchmarks.load.http_load import half, single_cycles
from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.pause import pause, resume
from benchmarks.raw import copy_rate
from benchmarks.raw.http_protocol import bare_server
from benchmarks.raw.producer_rate import transactional_rate
from benchmarks.speed.relay import TOPIC as RECORDS
from benchmarks.speed.relay import record
from benchmarks.speed.service import GROUP, TOPIC

COPIED: Final = 50_000
PRODUCED: Final = {500: 40_000, 2000: 40_000}
"""Records per transaction, and the records of a measurement."""
REQUESTED: Final = 10_000
CONNECTIONS: Final = 64


class References:
    """PostgreSQL and Kafka of an `outbox dev` whose programs are paused."""

    name = "alone"

    def __init__(self, running: dict[str, Any]) -> None:
        self._running = running
        self._pids: dict[str, int] = running["pids"]
        admin = AdminClient({"bootstrap.servers": running["kafka_bootstrap_servers"]})
        admin.create_topics([NewTopic(RECORDS, num_partitions=6)])[RECORDS].result(30)

    def awaken(self) -> None:
        """Let the servers go on, without the programs; produce a little."""
        resume((self._pids["postgres"], self._pids["kafka"]))
        self._producing(2000, 500)()

    def sleep(self) -> None:
        """Pause the servers."""
        pause((self._pids["postgres"], self._pids["kafka"]))

    def measure(self, plan: Plan) -> list[Row]:
        """Measure each part once."""
        rows = [self._copy(plan.messages(COPIED))]
        for batch, records in PRODUCED.items():
            count = plan.messages(records)
            path = f"transactional producer, {batch} records each"
            rows.append(self._measured(path, count, ("kafka",), self._producing(count, batch)))
        return [*rows, self._http(plan.messages(REQUESTED))]

    def _copy(self, rows: int) -> Row:
        url = self._running["database_url"]

        def work() -> float:
            return float(copy_rate.rate(url, rows, 500)["per_second"])

        return self._measured("COPY of 500 rows", rows, ("postgres",), work)

    def _http(self, cycles: int) -> Row:
        """Two requests a message, as a prepare and an END."""
        with bare_server() as (url, pid):

            async def load() -> float:
                done = await single_cycles(
                    url, CONNECTIONS, cycles, lambda n: half(GROUP, TOPIC, n, "x" * 256)
                )
                return done.messages / done.seconds

            path = f"bare HTTP, two requests, x {CONNECTIONS}"
            return self._measured(path, cycles, (), lambda: asyncio.run(load()), {"server": pid})

    def _producing(self, count: int, batch: int) -> Callable[[], float]:
        records = [record(n, b"x" * 256) for n in range(count)]
        brokers = str(self._running["kafka_bootstrap_servers"])
        return lambda: transactional_rate(brokers, records, batch)

    def _measured(
        self,
        path: str,
        messages: int,
        servers: tuple[str, ...],
        work: Callable[[], float],
        others: dict[str, int] | None = None,
    ) -> Row:
        meter = Meter({**{name: self._pids[name] for name in servers}, **(others or {})})
        with meter.measured() as cost:
            rate = work()
        used = {**cost.servers, "client": cost.cpu}
        return {
            "path": path,
            "messages": messages,
            "acked_per_second": rate,
            "cpu_us": {name: each / messages * 1e6 for name, each in used.items()},
        }
