"""Does an audit of a service under full load ever report a false finding?

Producers of every kind load a real ``outbox dev``. Meanwhile one session audits both stores at
random moments; each run continues where the last one ended. The service is correct, so every
verdict must be clean. Then the producers stop and everything ends. One more run and one full run
must agree: together the runs have judged each commit and read each record once. Otherwise the
program ends with 1.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.audit.plain_audit import PlainAudit, Seen
from benchmarks.load.mixed_traffic import PARTITIONS, SIZES, Producers, Traffic
from benchmarks.load.slow_endpoint import slow_endpoint
from benchmarks.measure.machine import report, start
from benchmarks.speed.checks import PAUSE, Bench
from benchmarks.speed.service import outbox_dev
from outbox.settings.environment import load_settings
from outbox.telemetry.events import configure_logging
from spark.audit.audit import Audit
from spark.findings.verdict import Verdict
from spark.report.report import Report
from spark.report.store_run import store_and_notify
from spark.run_context import Options, RunContext
from spark.wiring import open_run

GROUP: Final = "cuts"
TOPICS: Final = ("cuts.orders", "cuts.points")
QUICK: Final = {"check_interval_seconds": 5, "check_max": 2, "batch_check": True}
"""On a shared core a checker may be late by seconds; after two intervals that is a finding, and a
true one."""
SHOWN: Final = 5
SPARK: Final = '{"spark.sql.shuffle.partitions": "2"}'
WARM_UP_SECONDS: Final = 3.0
SETTLE_SECONDS: Final = 600
OPEN: Final = "SELECT count(*) FROM outbox.reconciliation_open WHERE NOT parked"
BEHIND: Final = """SELECT coalesce(sum(cardinality(c.half_ids)), 0)
    FROM outbox.commit_log c JOIN outbox.progress p ON p.name = 'relay:' || c.shard
    WHERE (c.xid, cardinality(c.half_ids)) > (p.position, p.position_n)"""
COMMITTED: Final = """SELECT coalesce(sum(cardinality(half_ids)), 0)
    FROM outbox.reconciliation_commits"""


@dataclass(kw_only=True)
class RepeatedAudit:
    """A series of runs over one service, and their sums."""

    parts: RunContext
    options: Options
    sums: Counter[str] = field(default_factory=Counter)
    unclean: int = 0

    def cut(self, name: str) -> Report:
        """Run once and print the result."""
        began = time.monotonic()
        done = Audit(self.parts, self.options).run()
        store_and_notify(done, self.parts, SHOWN)
        self.parts.progress.timings = {}
        self.unclean += done.verdict is not Verdict.CLEAN
        self.sums["judged"] += done.counts.judged
        self.sums["records"] += done.counts.records
        report(
            "cut",
            of=name,
            verdict=str(done.verdict),
            mode=done.plan.origin.mode,
            seconds=round(time.monotonic() - began, 1),
            **seen(done),
            load_1m=round(os.getloadavg()[0], 1),
        )
        for each in done.findings[:SHOWN] if done.verdict is not Verdict.CLEAN else ():
            report("finding", facts=str(each))
        return done


def seen(done: Report) -> dict[str, Any]:
    """Return what a run read, judged and left open."""
    counts = done.counts
    return {
        "records": counts.records,
        "judged": counts.judged,
        "in_flight": counts.in_flight,
        "ahead": counts.ahead,
        "prepared": counts.prepared,
        "parked": counts.parked,
        "carried": len(done.checkpoint.carried) if done.checkpoint else 0,
        "findings": {str(name): n for name, n in done.by_class.items()},
    }


class Cuts(Bench):
    """One loaded service."""

    def traffic(self, url: str, seed: int, per_second: int, cores: Collection[int]) -> Traffic:
        """Register the group and return its producers."""
        self.register(GROUP, f"{self._endpoint}/mixed", **QUICK)
        producers = Producers(url=url, group=GROUP, topics=TOPICS, seed=seed, per_second=per_second)
        return Traffic(producers=producers, cores=cores)

    def settle(self) -> float:
        """Wait until everything is decided or parked, and published; return the seconds."""
        began = time.monotonic()
        while left := self._one(OPEN)[0] + self._one(BEHIND)[0]:
            if time.monotonic() - began > SETTLE_SECONDS:
                raise SystemExit(f"{left} messages still under way after {SETTLE_SECONDS} s")
            PAUSE.wait(0.5)
        return round(time.monotonic() - began, 1)

    @property
    def committed(self) -> int:
        """Return the number of committed messages."""
        return int(self._one(COMMITTED)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The times of the cuts: each after a random pause, until there are enough or time is over."""

    cuts: int
    seconds: float
    chance: Random

    def __iter__(self) -> Iterator[int]:
        """Wait for each moment and return its number."""
        deadline = time.monotonic() + self.seconds
        for number in range(1, self.cuts + 1):
            PAUSE.wait(self.chance.uniform(0, 4))
            if time.monotonic() > deadline:
                return
            yield number


def take_cuts(bench: Cuts, traffic: Traffic, audit: RepeatedAudit, moments: Moments) -> bool:
    """Audit at random moments under load, then once more and in full; return whether clean."""
    with traffic.flowing(WARM_UP_SECONDS):
        pass
    bench.settle()
    audit.cut("a warm-up at rest")
    with traffic.flowing():
        for number in moments:
            audit.cut(f"{number} under load")
    report("traffic", **traffic.summary())
    report("settled", seconds=bench.settle())
    audit.cut("the rest")
    together = dict(audit.sums)
    whole = replace(audit, options=replace(audit.options, full=True))
    counts = whole.cut("everything").counts
    alone = {"judged": counts.judged, "records": counts.records}
    agree = together == alone == {"judged": bench.committed, "records": bench.committed}
    report("sum", of_the_runs=together, of_everything=alone, committed=bench.committed, agree=agree)
    return agree and not whole.unclean


def take_plain_cuts(bench: Cuts, traffic: Traffic, audit: PlainAudit, moments: Moments) -> bool:
    """Take the cuts without Spark, under load and once at rest; return whether all is clean."""
    seen_by: list[Seen] = []
    with traffic.flowing():
        for number in moments:
            began = time.monotonic()
            seen_by.append(audit.cut())
            seconds = round(time.monotonic() - began, 2)
            figures = asdict(seen_by[-1])
            report("plain cut", of=number, clean=seen_by[-1].clean, **figures, seconds=seconds)
    report("traffic", **traffic.summary())
    report("settled", seconds=bench.settle())
    last = audit.cut()
    report("plain cut", of="everything", clean=last.clean, **asdict(last))
    agree = last.committed == last.judged == last.records == bench.committed
    clean = sum(each.clean for each in seen_by)
    report("sum", cuts=len(seen_by), clean=clean, committed=bench.committed, agree=agree)
    return agree and last.clean and clean == len(seen_by) > 0


def cores_of_service(*, apart: bool) -> Collection[int]:
    """Return the cores for the load; with ``apart`` the last one is reserved for this process.

    On a shared core a service under full load would only slow the audit down.
    """
    cores = sorted(os.sched_getaffinity(0))
    if not apart:
        return cores
    os.sched_setaffinity(0, cores[-1:])
    return cores[:-1]


def main() -> int:
    """Run the benchmark; return 1 if a verdict is not clean or the sums differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3600, help="at most so long under load")
    parser.add_argument("--plain", action="store_true", help="judge the cuts without Spark")
    parser.add_argument("--per-second", type=int, default=0, help="messages; 0 is no bound")
    parser.add_argument(
        "--apart", action="store_true", help="the audit has the last core, the rest all others"
    )
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    arguments = parser.parse_args()
    configure_logging("error", "json")
    loaded = cores_of_service(apart=arguments.apart)
    with (
        tempfile.TemporaryDirectory(prefix="outbox-bench-") as folder,
        slow_endpoint() as endpoint,
        outbox_dev(loaded) as running,
        closing(Cuts(running, endpoint)) as bench,
    ):
        traffic = bench.traffic(running["api_url"], arguments.seed, arguments.per_second, loaded)
        start("cuts", **vars(arguments), producers=traffic.producers.sizes, topics=len(TOPICS),
              partitions=PARTITIONS, value_bytes=SIZES)  # fmt: skip
        chance = Random(arguments.seed)
        moments = Moments(cuts=arguments.cuts, seconds=arguments.seconds, chance=chance)
        if arguments.plain:
            plain = PlainAudit(running["database_url"], running["kafka_bootstrap_servers"])
            return not take_plain_cuts(bench, traffic, plain, moments)
        settings = load_settings(
            {
                "OUTBOX_DATABASE_URL": running["database_url"],
                "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": running["kafka_bootstrap_servers"],
                "OUTBOX_RECONCILE_REPORT_DIR": str(Path(folder)),
                "OUTBOX_RECONCILE_SPARK_MASTER": "local[2]",
                "OUTBOX_RECONCILE_SPARK_CONF": SPARK,
            }
        )
        with open_run(settings, sys.stderr) as (parts, options):
            audit = RepeatedAudit(parts=parts, options=options)
            well = take_cuts(bench, traffic, audit, moments)
    return 0 if well else 1


if __name__ == "__main__":
    raise SystemExit(main())
