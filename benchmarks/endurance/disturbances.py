"""How long does an END take while everything happens that disturbs an installation?

Messages are prepared and ended one by one at a steady rate. Meanwhile others use transaction ids
up, so that leaves are made, fill and retire; PostgreSQL writes checkpoints and vacuums; somebody
dumps the database; the checker is killed; Kafka is stopped in order and started again. Each of them
comes at an interval of its own. Prints the slowest of a hundred and of a thousand ENDs for each
tenth of the time and for all of it. Exit code 1: an END was refused, a disturbance never happened,
or the slowest of a thousand took more than 100 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import sql

from benchmarks.load.http_load import Load
from benchmarks.load.steady_ends import ends
from benchmarks.measure.machine import report, start
from benchmarks.measure.pause import end_in_order
from benchmarks.speed.service import outbox_dev, register
from chaos.faults.leaves import TRANSACTIONS

AT_ONCE: Final = 10_000
"""Transactions that another program ends every two seconds: they fill a leaf in 3.5 minutes."""
GOAL_MS: Final = 100.0
SETTINGS: Final = {
    "OUTBOX_MAX_AGE_SECONDS": "60",
    "OUTBOX_RETENTION_SECONDS": "120",
    "OUTBOX_RECONCILE_HOLD_SECONDS": "0",
}
"""Leaves retire within the run."""
TABLES: Final = """SELECT c.oid::regclass::text FROM pg_class c
    WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind = 'r'"""
LEAVES: Final = """SELECT count(*) FROM pg_inherits
    WHERE inhparent = 'outbox.half_message'::regclass"""

Act = Callable[[dict[str, Any]], None]


def main() -> int:
    """Run the benchmark; return 1 if the goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--per-second", type=int, default=100, help="messages")
    asked = parser.parse_args()
    end_in_order()
    with outbox_dev(settings=SETTINGS) as running:
        start("disturbances", **vars(asked), every_seconds=INTERVALS)
        register(running["api_url"])
        asyncio.run(ends(running["api_url"], 5, asked.per_second))
        with disturbed(running) as happened:
            whole = measured(running["api_url"], asked.minutes * 60, asked.per_second)
        report("disturbances", **happened, leaves=look(running, LEAVES))
    summary = in_milliseconds(whole)
    report("END", **summary)
    missed = set(INTERVALS) - set(happened)
    return 0 if not (whole.failures or missed or summary["p99.9_ms"] > GOAL_MS) else 1


def measured(url: str, seconds: float, per_second: int) -> Load:
    """Send for so long, report each tenth; return all of it."""
    whole = Load()
    for tenth in range(10):
        part = asyncio.run(ends(url, max(1, round(seconds / 10)), per_second))
        report("tenth", number=tenth, **in_milliseconds(part))
        whole.latencies += part.latencies
        whole.failures += part.failures
    return whole


def in_milliseconds(load: Load) -> dict[str, Any]:
    """Return the number of ENDs, those that were refused, and how long they took."""
    ordered = sorted(load.latencies)
    places = {f"p{p}_ms": ordered[int(len(ordered) * p / 100)] for p in (50, 99, 99.9)}
    rounded = {name: round(each * 1000, 1) for name, each in places.items()}
    most = round(ordered[-1] * 1000, 1)
    return {"ends": len(ordered), "refused": load.failures, **rounded, "longest_ms": most}


@contextmanager
def disturbed(running: dict[str, Any]) -> Iterator[Counter[str]]:
    """Let everything happen for the block; yields how often each did."""
    happened: Counter[str] = Counter()
    ended = threading.Event()

    def again(name: str, every: float, act: Act) -> None:
        while not ended.wait(every):
            with suppress(ProcessLookupError):  # it is being started again just now
                act(running)
                happened[name] += 1

    threads = [threading.Thread(target=again, args=(name, *each)) for name, each in ACTS.items()]
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        stack.callback(ended.set)
        yield happened


def use_ids_up(running: dict[str, Any]) -> None:
    """End transactions that write nothing, as other programs in the same PostgreSQL do."""
    execute(running, TRANSACTIONS.format(AT_ONCE))


def write_checkpoint(running: dict[str, Any]) -> None:
    """Write everything that has changed to the disk, at once."""
    execute(running, "CHECKPOINT")


def vacuum(running: dict[str, Any]) -> None:
    """Vacuum and analyse the whole database."""
    execute(running, "VACUUM (ANALYZE)")


def dump(running: dict[str, Any]) -> None:
    """Read every table in one snapshot with the locks of pg_dump."""
    with psycopg.connect(running["database_url"]) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        tables = [sql.SQL(name) for (name,) in session.execute(TABLES).fetchall()]
        each = sql.SQL(", ").join(tables)
        session.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(each))
        for table in tables:
            with session.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(table)) as copy:
                for _ in copy:
                    pass


def kill_checker(running: dict[str, Any]) -> None:
    """End the checker without warning; its supervisor starts it again."""
    os.kill(present_pid(running, "checker"), signal.SIGKILL)


def restart_kafka(running: dict[str, Any]) -> None:
    """Stop Kafka in order; its supervisor starts it again."""
    os.kill(present_pid(running, "kafka"), signal.SIGTERM)


def present_pid(running: dict[str, Any], name: str) -> int:
    """Return the process of a program, which changes with each restart."""
    return int(json.loads(running["state"].read_text())["pids"][name])


def execute(running: dict[str, Any], statement: str) -> None:
    """Run one statement as the administrator."""
    with psycopg.connect(running["database_url"], autocommit=True) as session:
        session.execute(statement.encode())


def look(running: dict[str, Any], question: str) -> Any:
    """Return the first value of a query's answer."""
    with psycopg.connect(running["database_url"]) as session:
        row = session.execute(question.encode()).fetchone()
    return row[0] if row else None


ACTS: Final[dict[str, tuple[float, Act]]] = {
    "ids used up": (2.0, use_ids_up),
    "checkpoint": (30.0, write_checkpoint),
    "vacuum": (60.0, vacuum),
    "dump": (90.0, dump),
    "checker killed": (60.0, kill_checker),
    "Kafka restarted": (300.0, restart_kafka),
}
INTERVALS: Final = {name: seconds for name, (seconds, _) in ACTS.items()}
"""Seconds between two of each."""


if __name__ == "__main__":
    raise SystemExit(main())
