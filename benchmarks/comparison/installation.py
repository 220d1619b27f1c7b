"""An `outbox dev` under load: CPU by process, WAL, Kafka transactions, rates, latency.

A measurement ends when every message is published, so what the relay still has to do is not
forgotten, and a pause of the processes interrupts nothing.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from benchmarks.comparison.plan import CLIENTS, PATHS, RATES, Plan, Row
from benchmarks.load.http_load import connect, half
from benchmarks.measure.cpu_time import Meter, resident_megabytes
from benchmarks.measure.pause import pause, resume
from benchmarks.rivals.hot_paths import SHAPES, cycles
from benchmarks.speed import clients, latency
from benchmarks.speed.service import GROUP, TOPIC, register
from outbox.messages.message_id import SHARDS, shard_of
from outbox.postgres.sessions.connections import connect as connect_database

WAIT_SECONDS: Final = 30
RESUME_SECONDS: Final = 60
WARM: Final = {"single x 64": 1_000, "batch 500 x 4": 4_000}
WAL: Final = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"


class Installation:
    """One running `outbox dev`; ``running`` is its dev.json."""

    def __init__(self, name: str, running: dict[str, Any], *, with_clients: bool) -> None:
        self.name = name
        self.running = running
        self.url = str(running["api_url"])
        self._with_clients = with_clients
        self._warm = False
        register(self.url)

    def awaken(self) -> None:
        """Let the processes go on; return when records are published again, all of it warm."""
        pids = self.running["pids"]
        resume(pids[name] for name in ("postgres", "kafka", "api", "checker"))
        self.drain()
        for path, messages in WARM.items():
            asyncio.run(cycles(self.url, SHAPES[path][0], messages * (1 if self._warm else 3), "x"))
        self.drain()
        self._warm = True

    def sleep(self) -> None:
        """Pause the processes; everything is published."""
        pids = self.running["pids"]
        pause(pids[name] for name in ("checker", "api", "kafka", "postgres"))

    def awaken_programs(self) -> None:
        """Let the API and the checker go on."""
        resume(self.running["pids"][name] for name in ("api", "checker"))

    def sleep_programs(self) -> None:
        """Pause the API and the checker alone; the servers rest by themselves."""
        pause(self.running["pids"][name] for name in ("checker", "api"))

    def measure(self, plan: Plan) -> list[Row]:
        """Measure each path once."""
        value = "x" * plan.value_bytes
        rows = [self._path(path, plan.messages(count), value) for path, count in PATHS.items()]
        if self._with_clients:
            rows += [self._client(path, plan.messages(count), value)
                     for path, count in CLIENTS.items()]  # fmt: skip
        return rows + self._latencies(plan, value)

    def cost(self, path: str, messages: int) -> float:
        """Return the CPU microseconds that a message costs all servers until it is published."""
        return sum(self.rate_and_costs(path, messages)[1].values())

    def rate_and_costs(self, path: str, messages: int) -> tuple[float, dict[str, float]]:
        """Return messages a second until published, and the CPU microseconds of one by server."""
        meter = Meter(self.running["pids"])
        with meter.measured() as cost:
            asyncio.run(cycles(self.url, SHAPES[path][0], messages, "x" * 256))
            self.drain()
        micros = {name: used / messages * 1e6 for name, used in cost.servers.items()}
        return messages / cost.wall, micros

    def drain(self) -> None:
        """Return when everything is published that was committed before; raises SystemExit."""
        drained(self.url)

    def _path(self, path: str, messages: int, value: str) -> Row:
        def load() -> dict[str, Any]:
            done = asyncio.run(cycles(self.url, SHAPES[path][0], messages, value))
            summary = done.summary()
            return {"seconds": done.seconds, **{each: summary[each] for each in summary
                    if each in ("failures", "p50_ms", "p99_ms")}}  # fmt: skip

        return {"path": path, **self._measured(messages, load)}

    def _client(self, path: str, messages: int, value: str) -> Row:
        kind, at_a_time = path.split()[1], int(path.split()[-1])
        with clients.processes(self.url, kind, at_a_time, value) as send:
            send(int(messages * clients.WARM))
            return {"path": path, **self._measured(messages, lambda: {"seconds": send(messages)})}

    def _measured(self, messages: int, load: Callable[[], dict[str, Any]]) -> Row:
        """Run a load and wait until it is published; return what it cost and its rates."""
        wal, batches = self._asked(WAL), self._asked(latency.BATCHES)
        meter = Meter(self.running["pids"])
        with meter.measured() as cost:
            found = load()
            self.drain()
        threading.Event().wait(latency.SETTLE_SECONDS)
        if found.get("failures"):
            raise SystemExit(f"{found['failures']} of {messages} messages failed")
        used = {**cost.servers, "client": cost.cpu}
        return {
            "messages": messages,
            "acked_per_second": messages / found.pop("seconds"),
            "through_per_second": messages / cost.wall,
            **found,
            "cpu_us": {name: each / messages * 1e6 for name, each in used.items()},
            "wal_bytes": (self._asked(WAL) - wal) / messages,
            "transactions_per_second": (self._asked(latency.BATCHES) - batches) / cost.wall,
            "resident_mb": {
                name: resident_megabytes(self.running["pids"][name]) for name in ("api", "checker")
            },
        }

    def _latencies(self, plan: Plan, value: str) -> list[Row]:
        arrivals = latency.Arrivals(self.running)
        rows = []
        with arrivals.watched():
            for path, rate in RATES.items():
                asyncio.run(latency.series(self.running, arrivals, rate, 1.0, value))
                found = latency.measure(self.running, arrivals, rate, plan.latency_seconds, value)
                used = {name: found.pop(f"{name}_us") for name in latency.PROCESSES}
                rows.append({"path": path, **found, "cpu_us": used})
        return rows

    def _asked(self, question: str) -> int:
        with connect_database(self.running["database_url"], "bench") as connection:
            row = connection.execute(question.encode()).fetchone()
        return int(str(row[0] or 0)) if row else 0


def drained(url: str) -> None:
    """Return when everything is published that was committed before; raises SystemExit.

    A relay publishes the messages of a shard in the order of their commits. So one more message
    for each shard is sent, and its END waits for its publication.
    """
    deadline = time.monotonic() + RESUME_SECONDS
    while not asyncio.run(_shards_are_through(url)):
        if time.monotonic() > deadline:
            raise SystemExit(f"not everything was published within {RESUME_SECONDS} s")


async def _shards_are_through(url: str) -> bool:
    keys: dict[int, str] = {}
    for n in range(1000):
        keys.setdefault(shard_of(TOPIC, b"last-%d" % n), f"last-{n}")
    assert len(keys) == SHARDS
    return all(await asyncio.gather(*(_is_through(url, key) for key in keys.values())))


async def _is_through(url: str, key: str) -> bool:
    try:
        connection = await connect(url)
        body = json.dumps({**half(GROUP, TOPIC, 0, "x"), "key": key}).encode()
        status, answer = await connection.post("/v1/half-messages", body)
        if status != 201:
            return False
        path = f"/v1/half-messages/{json.loads(answer)['message_id']}/end"
        wait = f"Prefer: wait={WAIT_SECONDS}\r\n"
        _, answer = await connection.post(path, b'{"decision":"COMMIT"}', wait)
        connection.close()
    except (OSError, EOFError):
        return False
    return bool(json.loads(answer).get("state") == "PUBLISHED")
