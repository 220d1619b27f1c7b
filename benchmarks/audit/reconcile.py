"""What does an audit cost, compared with a plain scan of Kafka and with other methods?

The main figure is CPU seconds of this process and its JVM; those of the servers are reported too.
`--data` keeps the two filled stores for a later run, `--only` selects some of the questions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.sql import SparkSession

from benchmarks.audit.audit_rivals import bare_scan, full_join, single_node
from benchmarks.audit.compare_step import compare_alone
from benchmarks.audit.filled_stores import Stores, in_flushes, one_by_one, stores
from benchmarks.measure.cpu_time import Cost, Meter
from benchmarks.measure.machine import report, start
from checker.relay_wiring import tune_garbage_collector
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from outbox.telemetry.events import configure_logging
from spark.audit.audit import Audit
from spark.progress import Progress, Stage
from spark.report.report import Report
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from spark.wiring import open_run

QUESTIONS: Final = ("audit", "scan", "join", "rivals", "compare")
BEYOND: Final = frozenset(
    {"sum up", "start Spark", "reach both stores", "order", "sample", "count for the charts"}
)
"""Stages outside the gate, which limits the cost of the comparison, not that of the charts."""
GATE: Final = 1.45
SHOWN_SECONDS: Final = 0.05


@dataclass(kw_only=True)
class MeteredProgress(Progress):
    """Progress that also keeps the CPU seconds of each stage, here and in PostgreSQL."""

    meter: Meter
    cpu: dict[str, float] = field(default_factory=dict)
    postgres: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time and meter the block."""
        own, postgres = self.meter.own(), self.meter.of("postgres")
        with super().stage(name) as stage:
            yield stage
        self.cpu[name] = self.cpu.get(name, 0.0) + self.meter.own() - own
        self.postgres[name] = self.postgres.get(name, 0.0) + self.meter.of("postgres") - postgres


def main() -> None:
    """Answer the questions in turn; print one line of JSON each."""
    arguments = _arguments()
    asked: Sequence[str] = arguments.only or QUESTIONS
    configure_logging("error", "json")
    tune_garbage_collector()
    start("reconcile", **{**vars(arguments), "data": str(arguments.data)})
    if set(asked) != {"compare"}:
        fill = one_by_one if arguments.one_by_one else in_flushes
        with stores(arguments.data, arguments.messages, arguments.size, fill) as filled:
            report("stores", messages=filled.messages, value_bytes=arguments.size)
            _over_stores(filled, asked, arguments)
    if "compare" in asked:
        compare_alone(arguments.compare)


def _over_stores(filled: Stores, asked: Sequence[str], arguments: argparse.Namespace) -> None:
    with TemporaryDirectory(prefix="outbox-bench-") as folder:
        if {"audit", "scan", "join"} & set(asked):
            _with_spark(filled, asked, Path(folder), arguments)
    if "rivals" in asked:
        for name, ask in single_node().items():
            with filled.meter.measured() as cost:
                differ = ask(filled)
            report("rival", way=name, differ=differ, **cost.figures(filled.messages))


def _with_spark(
    filled: Stores, asked: Sequence[str], folder: Path, arguments: argparse.Namespace
) -> None:
    """Audit cold and warm, then scan and join in the same warm session."""
    meter, audited, scanned = filled.meter, Cost(), Cost()
    began, before = time.perf_counter(), meter.own()
    settings = _settings(filled, folder, arguments)
    with open_run(settings, sys.stderr, resident=not arguments.single) as (given, options):
        session = given.sources.spark_session
        if "audit" in asked:
            for number in range(arguments.warm + 1):
                parts = replace(given, progress=_metered(given, filled))
                with meter.measured() as cost:
                    done = _audit(parts, options)
                if number:
                    audited = _judged_alone(parts)
                else:  # with the start of Spark
                    cost = Cost(meter.own() - before, time.perf_counter() - began)
                report("audit", run=f"warm {number}" if number else "cold",
                       **cost.figures(filled.messages), verdict=str(done.verdict),
                       judging_cpu_s=round(_judged_alone(parts).cpu, 2),
                       records=done.counts.records, **_stages(parts))  # fmt: skip
            _publish(parts, done, session)
        if "scan" in asked:
            scanned = _repeated(filled, "bare scan", lambda: bare_scan(session, filled), arguments)
        if "join" in asked:
            _repeated(filled, "Spark full join", lambda: full_join(session, filled), arguments)
    if audited.cpu and scanned.cpu:
        ratio = round(audited.cpu / scanned.cpu, 2)
        report("gate", audit_to_bare_scan=ratio, at_most=GATE, kept=ratio <= GATE)


def _audit(parts: RunContext, options: Options) -> Report:
    """Audit everything from the beginning, so that each run has the same work."""
    return Audit(parts, replace(options, full=True)).run()


def _repeated(
    filled: Stores, way: str, ask: Callable[[], int], arguments: argparse.Namespace
) -> Cost:
    """Repeat until warm; return the cost of the last repetition."""
    costs: list[Cost] = []
    for number in range(arguments.warm + 1):
        with filled.meter.measured() as cost:
            differ = ask()
        name = f"warm {number}" if number else "first"
        report("spark", way=way, run=name, differ=differ, **cost.figures(filled.messages))
        costs.append(cost)
    return costs[-1]


def _publish(parts: RunContext, done: Report, session: SparkSession) -> None:
    began = time.perf_counter()
    store_run(done, parts.run_store, 50)
    seconds = round(time.perf_counter() - began, 2)
    report("report", seconds=seconds, heap_peak_mb=heap_peak_mb(session))


def heap_peak_mb(session: SparkSession) -> int:
    """Return the JVM's largest heap so far with garbage: an upper bound of its need."""
    jvm: Any = session._jvm
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    peaks = [each.getPeakUsage().getUsed() for each in pools if each.getType().name() == "HEAP"]
    return int(sum(peaks) / 1e6)


def _metered(given: RunContext, filled: Stores) -> MeteredProgress:
    return MeteredProgress(stream=given.progress.stream, clock=given.clock, meter=filled.meter)


def _judged_alone(parts: RunContext) -> Cost:
    assert isinstance(parts.progress, MeteredProgress)
    stages = parts.progress.cpu.items()
    return Cost(cpu=sum(cpu for name, cpu in stages if name not in BEYOND))


def _stages(parts: RunContext) -> dict[str, Any]:
    assert isinstance(parts.progress, MeteredProgress)
    both = {"stages_cpu_s": parts.progress.cpu, "postgres_stages_cpu_s": parts.progress.postgres}
    return {
        whose: {name: round(cpu, 2) for name, cpu in stages.items() if cpu >= SHOWN_SECONDS}
        for whose, stages in both.items()
    }


def _settings(filled: Stores, folder: Path, arguments: argparse.Namespace) -> Settings:
    return load_settings(
        {
            "OUTBOX_DATABASE_URL": filled.database_url,
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": filled.bootstrap_servers,
            "OUTBOX_RECONCILE_REPORT_DIR": str(folder),
            "OUTBOX_RECONCILE_SPARK_MASTER": arguments.master,
            "OUTBOX_RECONCILE_SPARK_CONF": json.dumps({"spark.driver.memory": arguments.heap}),
        }
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=240, help="bytes of each value")
    parser.add_argument("--one-by-one", action="store_true", help="one commit row a message")
    parser.add_argument("--heap", default="2g", help="spark.driver.memory")
    parser.add_argument("--warm", type=int, default=3, help="runs behind the cold one")
    parser.add_argument("--single", action="store_true", help="the JVM of a run without --every")
    parser.add_argument("--compare", type=int, nargs="*", default=[4_000_000, 40_000_000])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--data", type=Path, help="keep both stores here")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
