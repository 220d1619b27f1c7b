"""How many halves per second do checks decide, and does a dead producer slow the others down?

Rates: a backlog of undecided halves and an endpoint that takes 50 ms, with single checks and with
batches of 100. Outage: all producers are down while halves keep arriving, then they are back;
everything must drain and nothing may be parked. Fairness: the delay of the first check of two
healthy groups, alone, and beside one hanging group with a large backlog and 100 groups without an
endpoint. The service is a real ``outbox dev``.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg

from benchmarks.load.http_load import half
from benchmarks.load.slow_endpoint import SLOW_SECONDS, slow_endpoint
from benchmarks.measure.evidence import keep
from benchmarks.measure.machine import report, start
from benchmarks.speed.service import TOPIC, outbox_dev, stopped

EVIDENCE: Final = Path("docs/evidence")
TITLES: Final = {
    "checks": "checks: how fast checks decide, and what a dead producer costs the others",
    "outage": "outage: producers are gone for long, then everything drains and nothing is parked",
}
IMMUNITY_SECONDS: Final = 1
INFLIGHT: Final = 64
BATCH: Final = 500
PATIENCE_SECONDS: Final = 1800
HEALTHY: Final = ("healthy-1", "healthy-2")
NOWHERE: Final = "http://127.0.0.1:65533/check"
DECIDED: Final = """SELECT count(*), coalesce(extract(epoch FROM max(decided_at) - %s), 0)
    FROM outbox.op_message o JOIN outbox.half_message h USING (half_id)
    JOIN outbox.producer_group g ON g.id = h.producer_group_id WHERE g.name = %s"""
DELAYS: Final = """SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY
    extract(epoch FROM a.asked_at - h.prepared_at) * 1000 - %s), count(*)
    FROM outbox.check_attempt a JOIN outbox.half_message h USING (half_id)
    JOIN outbox.producer_group g ON g.id = h.producer_group_id
    WHERE g.name = ANY (%s) AND a.attempt = 1 AND h.prepared_at >= %s"""
PAUSE: Final = threading.Event()
PARKED: Final = "SELECT count(*) FROM outbox.parked_message"


class Bench:
    """One running service and the endpoints of the producers."""

    def __init__(self, running: dict[str, Any], endpoint: str) -> None:
        self._http = httpx2.Client(base_url=running["api_url"], timeout=30)
        self._database = psycopg.connect(running["database_url"], autocommit=True)
        self._checker = int(running["pids"]["checker"])
        self._endpoint = endpoint

    def close(self) -> None:
        """Close the connections to the service."""
        self._http.close()
        self._database.close()

    def register(self, group: str, check_url: str, **settings: Any) -> None:
        """Register a producer group, or change its endpoint."""
        body = {
            "check_url": check_url,
            "transaction_timeout_seconds": IMMUNITY_SECONDS,
            "check_interval_seconds": 1,
            "check_timeout_seconds": 2,
            "max_inflight": INFLIGHT,
            **settings,
        }
        path, newest = f"/v1/producer-groups/{group}", {"If-Match": "*"}
        known = self._http.get(path).status_code == httpx2.codes.OK
        headers = newest if known else {}
        self._http.put(path, json=body, headers=headers).raise_for_status()

    def prepare(self, group: str, count: int) -> None:
        """Prepare halves that their producer never ends."""
        for begin in range(0, count, BATCH):
            numbers = range(begin, min(count, begin + BATCH))
            items = [half(group, TOPIC, n, "x" * 256) for n in numbers]
            self._http.post("/v1/half-messages/batch", json={"items": items}).raise_for_status()

    def rate(self, form: str, count: int) -> None:
        """Measure the rate at which a backlog of one group is decided."""
        group = f"rate-{form}"
        self.register(group, f"{self._endpoint}/slow", batch_check=form == "batch")
        with stopped(self._checker):
            self.prepare(group, count)
        seconds = self._drained(group, count, self._now())
        report(
            f"checks, {form} form",
            endpoint_ms=round(SLOW_SECONDS * 1000),
            max_inflight=INFLIGHT,
            decided=count,
            per_second=round(count / seconds),
        )

    def fairness(self, seconds: float, backlog: int, dead: int) -> None:
        """Measure the delay of healthy groups alone, then beside a hanging group and dead ones."""
        for group in HEALTHY:
            self.register(group, f"{self._endpoint}/slow")
        alone = self._delays("healthy groups alone", seconds)
        self.register("hanging", f"{self._endpoint}/hang")
        self.prepare("hanging", backlog)
        for number in range(dead):
            self.register(f"dead-{number}", NOWHERE)
            self.prepare(f"dead-{number}", 10)
        beside = self._delays(f"beside 1 hanging group and {dead} dead ones", seconds)
        change = [round(b / a - 1, 3) for a, b in zip(alone, beside, strict=True)]
        report("fairness", hanging_backlog=backlog, p50_p95_p99_change=change)

    def outage(self, seconds: float, per_second: int) -> None:
        """Prepare halves while their producer is down; report the result when it is back."""
        group, prepared = "outage", 0
        self.register(group, NOWHERE, batch_check=True)
        began = time.monotonic()
        while (gone := time.monotonic() - began) < seconds:
            self.prepare(group, BATCH)
            prepared += BATCH
            PAUSE.wait(max(0.0, prepared / per_second - gone))
        self.register(group, f"{self._endpoint}/slow", batch_check=True)
        back = time.monotonic()
        self._drained(group, prepared, self._now())
        parked = self._one(PARKED)[0]
        drain = round(time.monotonic() - back, 1)
        figures = {"prepared": prepared, "outage_s": round(gone), "drained_in_s": drain}
        report("outage of all producers", **figures, parked=parked)

    def _delays(self, what: str, seconds: float) -> Sequence[float]:
        began = self._now()
        asyncio.run(self._trickle(seconds))
        settled = time.monotonic() + 10
        found = self._one(DELAYS, IMMUNITY_SECONDS * 1000, list(HEALTHY), began)
        while found[1] < self._prepared and time.monotonic() < settled:
            PAUSE.wait(0.2)
            found = self._one(DELAYS, IMMUNITY_SECONDS * 1000, list(HEALTHY), began)
        p50, p95, p99 = (round(float(each), 1) for each in found[0])
        report("delay of the first check", of=what, checks=found[1], p50=p50, p95=p95, p99=p99)
        return [p50, p95, p99]

    async def _trickle(self, seconds: float) -> None:
        """Prepare 20 halves per second in each healthy group."""
        self._prepared = 0
        for tick in range(int(seconds * 20)):
            for group in HEALTHY:
                await asyncio.to_thread(self.prepare, group, 1)
                self._prepared += 1
            await asyncio.sleep(0.04 + 0.001 * (tick % 7))

    def _now(self) -> datetime:
        now: datetime = self._one("SELECT clock_timestamp()")[0]
        return now

    def _drained(self, group: str, count: int, since: datetime) -> float:
        """Wait until all of a group is decided; return the seconds until the last decision.

        A flush gives its decisions one time, so the first and the last may have the same.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            decided, seconds = self._one(DECIDED, since, group)
            if decided >= count:
                return float(seconds)
            PAUSE.wait(0.2)
        raise SystemExit(f"{group}: {decided} of {count} decided after {PATIENCE_SECONDS} s")

    def _one(self, statement: str, *parameters: Any) -> tuple[Any, ...]:
        row = self._database.execute(statement.encode(), parameters).fetchone()
        assert row is not None
        return row


def main() -> None:
    """Run the benchmark; ``--scale`` multiplies its sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--outage", type=float, default=30.0, help="seconds without producers")
    parser.add_argument("--per-second", type=int, default=1000, help="halves during the outage")
    parser.add_argument("--keep", choices=TITLES, help="write docs/evidence/KEEP.md and .json")
    arguments = parser.parse_args()
    with (
        slow_endpoint() as endpoint,
        outbox_dev() as running,
        closing(Bench(running, endpoint)) as bench,
    ):
        start("checks", scale=arguments.scale)
        bench.rate("single", int(6_000 * arguments.scale))
        bench.rate("batch", int(30_000 * arguments.scale))
        bench.outage(arguments.outage, arguments.per_second)
        bench.fairness(30 * arguments.scale, int(10_000 * arguments.scale), dead=100)
    if arguments.keep:
        keep(EVIDENCE, arguments.keep, TITLES[arguments.keep])


if __name__ == "__main__":
    main()
