"""Does the checker keep its size while every hostile check endpoint answers it?

Each hostile endpoint of the crash harness, and one with an expired certificate, serves two producer
groups, one of single checks and one of batches. Their halves are checked every two seconds, and the
breakers are deleted every second, so that no endpoint is left out. A healthy group beside them gets
five halves per second.

The checker's resident memory and open file descriptors are read from /proc once per second. A
warm-up of a minute is left out, because code, connections and librdkafka's buffers still grow then.
*Flat* means that the mean of the last minute is at most 5 % above the mean of the first, for memory
and for descriptors. The program ends with 1 if one of them is not flat, if an endpoint got no check
in the last minute, or if an endpoint without true answers decided anything.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Any, Final

from benchmarks.load.http_load import half
from benchmarks.load.slow_endpoint import slow_endpoint
from benchmarks.measure.machine import report, start
from benchmarks.speed.checks import DELAYS, IMMUNITY_SECONDS, PAUSE, Bench
from benchmarks.speed.service import TOPIC, outbox_dev
from chaos.workload.hostile_endpoints import EXPIRED_TLS, HOSTILE_ENDPOINTS, environment_of
from devservers.child import Child, Command
from devservers.ports import LOOPBACK, free_ports, is_free

MODULE: Final = "chaos.workload.hostile_endpoints"
START_SECONDS: Final = 30.0
MINUTE: Final = 60
FLAT: Final = 1.05
HEALTHY: Final = "healthy"
HEALTHY_PER_SECOND: Final = 5
HALVES: Final = {"single": 2, "batch": 10}
MOST_CHECKS: Final = 1000
EVERY_SECONDS: Final = 2
TRUTHFUL: Final = ("extra_id", "two_answers", "every_second")
FED: Final = (*TRUTHFUL, "busy")
"""Endpoints that decide their halves or postpone them for an hour: they get new halves."""
FEED_SECONDS: Final = 2
CLOSE_BREAKERS: Final = "DELETE FROM outbox.check_breaker RETURNING 1"
NOW: Final = "SELECT clock_timestamp()"
ASKED: Final = """SELECT g.name, count(*), count(*) FILTER (WHERE a.asked_at >= %s)
    FROM outbox.check_attempt a JOIN outbox.half_message h USING (half_id)
    JOIN outbox.producer_group g ON g.id = h.producer_group_id GROUP BY 1"""
OUTCOMES: Final = """SELECT a.outcome, count(*)
    FROM outbox.check_attempt a JOIN outbox.half_message h USING (half_id)
    JOIN outbox.producer_group g ON g.id = h.producer_group_id WHERE g.name <> %s GROUP BY 1"""
DECIDED: Final = """SELECT g.name, count(*) FROM outbox.op_message o
    JOIN outbox.half_message h USING (half_id)
    JOIN outbox.producer_group g ON g.id = h.producer_group_id GROUP BY 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a process at one moment."""

    rss_kib: int
    descriptors: int
    cpu_seconds: float


def size_of(pid: int) -> Size:
    """Read the size of a process. Raises FileNotFoundError after its end."""
    process = Path("/proc") / str(pid)
    pages = int((process / "statm").read_text().split()[1])
    times = (process / "stat").read_text().rpartition(")")[2].split()
    return Size(
        rss_kib=pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        descriptors=len(list((process / "fd").iterdir())),
        cpu_seconds=(int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
    )


def trend(values: Sequence[float]) -> dict[str, Any]:
    """Compare the last minute of values, one per second, with the first."""
    first, last = fmean(values[:MINUTE]), fmean(values[-MINUTE:])
    slope = linear_regression(range(len(values)), values).slope
    return {
        "first_minute": round(first, 1),
        "last_minute": round(last, 1),
        "ratio": round(last / first, 3),
        "slope_a_minute": round(slope * MINUTE, 2),
        "peak": max(values),
        "minutes": [round(fmean(minute)) for minute in _minutes(values)],
        "flat": last <= first * FLAT,
    }


def _minutes(values: Sequence[float]) -> list[Sequence[float]]:
    return [values[second : second + MINUTE] for second in range(0, len(values), MINUTE)]


@contextmanager
def hostile_endpoints() -> Iterator[Mapping[str, str]]:
    """Run all hostile endpoints in one process for the block; yield the check URL of each."""
    names = (*HOSTILE_ENDPOINTS, EXPIRED_TLS)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with tempfile.TemporaryDirectory(prefix="outbox-hostile-") as folder:
        (Path(folder) / "truth").mkdir()
        command = Command(
            name="hostile endpoints",
            arguments=[sys.executable, "-m", MODULE],
            log=None,
            environment={
                **environment_of(Path(folder), ports, 0),
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        child = Child(command)
        try:
            child.wait_until(lambda: not any(map(is_free, ports.values())), START_SECONDS)
            yield {
                name: f"{'https' if name == EXPIRED_TLS else 'http'}://{LOOPBACK}:{port}/check"
                for name, port in ports.items()
            }
        finally:
            child.kill()


class Hostile(Bench):
    """One running service, the groups of the hostile endpoints and the healthy group."""

    def admit(self, urls: Mapping[str, str], seconds: int) -> None:
        """Register two groups per endpoint; give each some halves that nobody ends."""
        self._names, self._numbers = tuple(urls), 0
        self.register(HEALTHY, f"{self._endpoint}/slow")
        for name, url in urls.items():
            for form, halves in HALVES.items():
                group = f"{name}-{form}"
                self.register(
                    group,
                    url,
                    batch_check=form == "batch",
                    check_interval_seconds=EVERY_SECONDS + seconds // MOST_CHECKS,
                    check_max=MOST_CHECKS,
                )
                self.feed([group] * halves)

    def feed(self, groups: Sequence[str]) -> None:
        """Prepare a half in each of the groups; its truth is found by the transaction id."""
        items = []
        for group in groups:
            self._numbers += 1
            known = {"transaction_id": f"hostile-0-{self._numbers}"}
            items.append(half(group, TOPIC, self._numbers, "x" * 256) | known)
        self._http.post("/v1/half-messages/batch", json={"items": items}).raise_for_status()

    def watch(self, seconds: int) -> list[Size]:
        """Keep everything busy for ``seconds``; return the checker's size per second."""
        sizes, began = [], time.monotonic()
        fed = [f"{name}-{form}" for name in FED for form in HALVES]
        for second in range(1, seconds + 1):
            self._database.execute(CLOSE_BREAKERS.encode())
            self.feed([HEALTHY] * HEALTHY_PER_SECOND)
            if second % FEED_SECONDS == 0:
                self.feed(fed)
            PAUSE.wait(max(0.0, began + second - time.monotonic()))
            sizes.append(size_of(self._checker))
        return sizes

    def run(self, seconds: int) -> bool:
        """Return whether the checker stayed flat and no endpoint was skipped or believed."""
        self.watch(MINUTE)
        began = self._one(NOW)[0]
        sizes = self.watch(seconds - MINUTE)
        last_minute = self._one(NOW)[0]
        sizes += self.watch(MINUTE)
        memory = trend([size.rss_kib for size in sizes])
        descriptors = trend([size.descriptors for size in sizes])
        report("checker's resident memory, KiB", **memory)
        report("checker's open file descriptors", **descriptors)
        self._report_load(began, sizes)
        return memory["flat"] and descriptors["flat"] and self._all_asked(last_minute)

    def _report_load(self, began: Any, sizes: Sequence[Size]) -> None:
        cpu = sizes[-1].cpu_seconds - sizes[0].cpu_seconds
        outcomes = dict(self._rows(OUTCOMES, HEALTHY))
        report("checks of hostile endpoints", **outcomes, checker_cores=round(cpu / len(sizes), 2))
        (delays, checks) = self._one(DELAYS, IMMUNITY_SECONDS * 1000, [HEALTHY], began)
        p50, p95, p99 = (round(float(each), 1) for each in delays)
        report("healthy group's delay, ms", checks=checks, p50=p50, p95=p95, p99=p99)

    def _all_asked(self, last_minute: Any) -> bool:
        asked = {name: late for name, _, late in self._rows(ASKED, last_minute)}
        groups = [f"{name}-{form}" for name in self._names for form in HALVES]
        believed = [name for name, _ in self._rows(DECIDED) if not name.startswith(TRUTHFUL)]
        report(
            "asked in the last minute",
            groups=len(groups),
            fewest=min(asked.get(group, 0) for group in groups),
            skipped=[group for group in groups if not asked.get(group)],
            believed=[name for name in believed if name != HEALTHY],
        )
        return all(asked.get(group) for group in groups) and set(believed) <= {HEALTHY}

    def _rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._database.execute(statement.encode(), parameters).fetchall()


def main() -> int:
    """Run the benchmark; return 1 if the checker grew, skipped an endpoint or believed one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="after the warm-up; 120 or more")
    arguments = parser.parse_args()
    with (
        hostile_endpoints() as urls,
        slow_endpoint() as endpoint,
        outbox_dev() as running,
        closing(Hostile(running, endpoint)) as bench,
    ):
        halves = sum(HALVES.values())
        start("hostile", seconds=arguments.seconds, endpoints=len(urls), halves_each=halves)
        bench.admit(urls, arguments.seconds)
        return 0 if bench.run(arguments.seconds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
