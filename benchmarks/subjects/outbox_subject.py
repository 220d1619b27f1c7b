"""An `outbox dev` under load: rates, latency, WAL, and CPU by process.

A measurement ends when every message is published, so what the relay still has to do is not
forgotten, and a pause of the processes interrupts nothing.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from typing import Any, Final

from benchmarks.load import clients, end_to_visible
from benchmarks.load.http_load import Load, batch_cycles, connect, half, single_cycles
from benchmarks.measure.cpu_time import Meter
from benchmarks.measure.pause import pause, resume
from benchmarks.plan import BATCH, CLIENTS, PATHS, RATES, Plan, Row
from benchmarks.subjects.outbox_dev import GROUP, TOPIC, register
from outbox.messages.message_id import SHARDS, shard_of
from outbox.postgres.sessions.connections import connect as connect_database

SERVERS: Final = ("postgres", "kafka", "api", "checker")
WAIT_SECONDS: Final = 30
RESUME_SECONDS: Final = 60
WARM: Final = {"single x 64": 1_000, "batch 500 x 4": 4_000}
WAL: Final = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"


class OutboxSubject:
    """One running `outbox dev`; ``running`` is its dev.json."""

    name = "this tree"

    def __init__(self, running: dict[str, Any]) -> None:
        self._running = running
        self._url = str(running["api_url"])
        self._warm = False
        register(self._url)

    def awaken(self) -> None:
        """Let the processes go on; return when records are published again, all of it warm."""
        resume(self._running["pids"][name] for name in SERVERS)
        drain(self._url)
        for path, messages in WARM.items():
            asyncio.run(cycles(self._url, path, messages * (1 if self._warm else 3), "x"))
        drain(self._url)
        self._warm = True

    def sleep(self) -> None:
        """Pause the processes; everything is published."""
        pause(self._running["pids"][name] for name in reversed(SERVERS))

    def measure(self, plan: Plan) -> list[Row]:
        """Measure each path once."""
        value = "x" * plan.value_bytes
        rows = [self._path(path, plan.messages(count), value) for path, (_, count) in PATHS.items()]
        rows += [
            self._client(path, plan.messages(count), value)
            for path, (kind, _, count) in CLIENTS.items()
            if kind not in clients.COMPILED or shutil.which(clients.COMPILED[kind][1][0])
        ]
        return rows + self._latencies(plan, value)

    def _path(self, path: str, messages: int, value: str) -> Row:
        def load() -> Row:
            done = asyncio.run(cycles(self._url, path, messages, value))
            if done.failures:
                raise SystemExit(f"{done.failures} of {messages} messages failed")
            return {"seconds": done.seconds, **done.percentiles()}

        return {"path": path, **self._measured(messages, load)}

    def _client(self, path: str, messages: int, value: str) -> Row:
        kind, at_a_time, _ = CLIENTS[path]
        if kind in clients.COMPILED:
            running = clients.compiled(self._url, kind, at_a_time, len(value))
        else:
            running = clients.processes(self._url, kind, at_a_time, value)
        with running as send:
            send(clients.WARM_JVM if kind == "java" else int(messages * clients.WARM))
            drain(self._url)
            return {"path": path, **self._measured(messages, lambda: {"seconds": send(messages)})}

    def _measured(self, messages: int, load: Callable[[], Row]) -> Row:
        """Run a load and wait until it is published; return what it cost and its rates."""
        wal = self._wal()
        with Meter(self._running["pids"]).measured() as cost:
            found = load()
            drain(self._url)
        used = {**cost.servers, "client": cost.cpu}
        return {
            "messages": messages,
            "acked_per_second": messages / found.pop("seconds"),
            "through_per_second": messages / cost.wall,
            **found,
            "cpu_us": {name: each / messages * 1e6 for name, each in used.items()},
            "wal_bytes": (self._wal() - wal) / messages,
        }

    def _latencies(self, plan: Plan, value: str) -> list[Row]:
        arrivals = end_to_visible.Arrivals(self._running)
        rows = []
        with arrivals.watched():
            for path, rate in RATES.items():
                asyncio.run(end_to_visible.series(self._running, arrivals, rate, 1.0, value))
                found = end_to_visible.measure(
                    self._running, arrivals, rate, plan.latency_seconds, value
                )
                rows.append({"path": path, **found})
        return rows

    def _wal(self) -> int:
        with connect_database(self._running["database_url"], "bench") as connection:
            row = connection.execute(WAL).fetchone()
        assert row is not None
        return int(str(row[0]))


async def cycles(url: str, path: str, messages: int, value: str) -> Load:
    """Prepare and commit messages on one of our paths."""
    connections, _ = PATHS[path]

    def make(n: int) -> dict[str, Any]:
        return half(GROUP, TOPIC, n, value)

    if path.startswith("batch"):
        return await batch_cycles(url, connections, max(1, messages // BATCH), BATCH, make)
    return await single_cycles(url, connections, messages, make)


def drain(url: str) -> None:
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
