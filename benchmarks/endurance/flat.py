"""Do the rates stay when an installation has a long history?

Two installations run side by side and are measured in turn, one of them paused. One is empty. The
other has ended a hundred million messages one by one, whose leaves are retired, has ten million
more in leaves that are not, published messages in several younger leaves, a million halves that
nobody has ended, and a transaction that holds back the removal of dead rows. The leaves pass by a
shift of the base of ids, as that many transactions would pass them; because they pass so fast, the
checker creates up to 64 more in advance. A retired leaf is created, filled and retired as by a
checker, with few messages: a table that is dropped leaves nothing of its rows. Prints the ratios of
rate and of CPU time, and the dead rows that are left. Exit code 1: a rate is more than a tenth
lower.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import psycopg

from benchmarks.comparison.command import awake_at_the_end
from benchmarks.comparison.installation import Installation
from benchmarks.endurance.backlog import wait_until
from benchmarks.load.history import LEAF_XIDS
from benchmarks.load.http_load import batch_cycles, connect, half
from benchmarks.load.passed_leaves import RETIRED_DAYS, SHIFT, age, owner_of, retire, shift
from benchmarks.load.passed_leaves import fill as fill_leaf
from benchmarks.measure.machine import report, start
from benchmarks.measure.pause import end_in_order
from benchmarks.speed.service import GROUP, TOPIC
from checker.maintenance.partition_maintenance import AHEAD_MOST
from outbox.postgres.sessions.connections import connect as connect_database

PATHS: Final = {"single x 64": 1_500, "batch 500 x 4": 15_000}
BATCH: Final = 1000
RETIRED: Final = 1_000
"""Messages that are stored in a leaf before it is retired."""
UNFINISHED: Final = 10
"""Those of them that stay when it is."""
OPEN_GROUP: Final = "open"
FLAT: Final = 0.9
AHEAD: Final = "SELECT outbox.create_leaves(2)"
UNSWEPT: Final = """SELECT FROM outbox.half_message WHERE half_id > (
    SELECT position FROM outbox.progress WHERE name = 'sweep') LIMIT 1"""
IS_AHEAD: Final = """SELECT FROM pg_class WHERE relnamespace = 'outbox'::regnamespace
    AND relname = 'half_message_' || (outbox.watermark() >> 20) + %s"""
SWEEP_SECONDS: Final = 600
LEAVES: Final = """SELECT count(*) FROM pg_inherits
    WHERE inhparent = 'outbox.half_message'::regclass"""
DEAD: Final = """SELECT relname, n_dead_tup FROM pg_stat_user_tables
    WHERE schemaname = 'outbox' AND n_dead_tup > 0
    AND relname ~ '^(half_message|op_message|commit_log)' ORDER BY 2 DESC LIMIT 5"""


def main() -> int:
    """Return 1 if a rate is more than a tenth lower than on the empty installation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leaves", type=int, default=8, help="that pass")
    parser.add_argument("--per-leaf", type=int, default=10_000, help="published messages")
    parser.add_argument("--retired", type=int, default=100, help="leaves, a million messages each")
    parser.add_argument("--commits", type=int, default=10_000_000, help="rows of the commit log")
    parser.add_argument("--open", type=int, default=1_000_000, help="halves that nobody ends")
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    end_in_order()
    with awake_at_the_end() as empty, awake_at_the_end() as full:
        young = Installation("empty", empty, with_clients=False)
        young.sleep_programs()
        old = Installation("full", full, with_clients=False)
        start("flat", **vars(asked))
        pass_by(old, asked.retired, asked.commits)
        report("passed", **state(full["database_url"]))
        fill(old, asked.leaves, asked.per_leaf)
        asyncio.run(leave_open(old.url, asked.open))
        wait_for_sweep(full["database_url"])
        wait_for_leaves(full["database_url"])
        report("filled", **state(full["database_url"]))
        with held_xmin(full["database_url"]):
            found = [compare(young, old, path, count, asked.pairs) for path, count in PATHS.items()]
        report("at the end", **state(full["database_url"]))
    return 0 if all(each >= FLAT for each in found) else 1


def pass_by(old: Installation, retired: int, commits: int) -> None:
    """Let leaves pass, retire the oldest ones, and fill the others with published messages.

    They are filled once every reader is past them, so nobody publishes or checks their messages.
    """
    full = -(-commits // LEAF_XIDS)
    with connect_database(old.running["database_url"], "bench") as session:
        passed = shift(session, retired + full)
        session.execute(AHEAD)
        old.drain()
        wait_for_sweep(old.running["database_url"])
        age(session)
        owner = owner_of(session, GROUP, TOPIC, b"x" * 100)
        for leaf in passed[:retired]:
            fill_leaf(session, leaf, owner, RETIRED, days=RETIRED_DAYS, undecided=UNFINISHED)
        asyncio.run(retire(old.running["database_url"], passed[:retired]))
        for leaf in passed[retired:]:
            fill_leaf(session, leaf, owner, commits // full)
        session.execute("ANALYZE")


def fill(old: Installation, leaves: int, per_leaf: int) -> None:
    """Publish messages in each leaf, then let the leaf pass."""

    def make(n: int) -> dict[str, Any]:
        return half("bench", TOPIC, n, "x" * 100)

    for _ in range(leaves):
        asyncio.run(batch_cycles(old.url, 4, max(4, per_leaf // BATCH), BATCH, make))
        old.drain()
        with connect_database(old.running["database_url"], "bench") as session:
            session.execute(SHIFT, (LEAF_XIDS,))
            session.execute(AHEAD)


async def leave_open(url: str, count: int) -> None:
    """Prepare halves that nobody ends; their first check is an hour away."""
    group = {"check_url": "http://127.0.0.1:65533/check", "transaction_timeout_seconds": 3600}
    path = f"{url}/v1/producer-groups/{OPEN_GROUP}"
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
        (await http.put(path, json=group)).raise_for_status()
    numbers = iter(range(0, count, BATCH))

    async def producer() -> None:
        connection = await connect(url)
        for first in numbers:
            items = [half(OPEN_GROUP, TOPIC, n, "x" * 100) for n in range(first, first + BATCH)]
            body = json.dumps({"items": items}).encode()
            _, answer = await connection.post("/v1/half-messages/batch", body)
            if any(item["status"] != httpx2.codes.CREATED for item in json.loads(answer)["items"]):
                raise SystemExit(f"a half was refused: {answer[:300]!r}")
        connection.close()

    await asyncio.gather(*(producer() for _ in range(4)))


def wait_for_sweep(database_url: str) -> None:
    """Wait until each half is in the check queue: how fast they get there is not measured here."""
    with connect_database(database_url, "bench") as session:
        if not wait_until(lambda: session.execute(UNSWEPT).fetchone() is None, SWEEP_SECONDS):
            raise SystemExit("the sweep did not pass the open halves")


def wait_for_leaves(database_url: str) -> None:
    """Wait until the checker has created leaves ahead, which it does once a minute."""
    with connect_database(database_url, "bench") as session:

        def is_ahead() -> bool:
            return session.execute(IS_AHEAD, (AHEAD_MOST,)).fetchone() is not None

        if not wait_until(is_ahead, SWEEP_SECONDS):
            raise SystemExit("the checker did not create leaves")


@contextmanager
def held_xmin(database_url: str) -> Iterator[None]:
    """Keep a snapshot for the block, as a long report of somebody else would."""
    with psycopg.connect(database_url) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SELECT count(*) FROM pg_class")
        yield


def compare(young: Installation, old: Installation, path: str, count: int, pairs: int) -> float:
    """Measure a path on both in turn; return the median ratio of the rates, full to empty."""
    rates: list[float] = []
    costs: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(pairs + 1):
        found = {}
        for each in (young, old) if number % 2 else (old, young):
            each.awaken_programs()
            found[each.name] = each.rate_and_costs(path, count)
            each.sleep_programs()
        if number:  # the first pair warms up
            (rate, cost), (old_rate, old_cost) = found["empty"], found["full"]
            rates.append(old_rate / rate)
            costs["all"].append(sum(old_cost.values()) / sum(cost.values()))
            for server in cost:
                costs[server].append(old_cost[server] / cost[server])
    rate = float(statistics.median(rates))
    medians = {f"{name}_cost": round(statistics.median(each), 3) for name, each in costs.items()}
    report(f"{path}: full / empty", pairs=pairs, rate=round(rate, 3), **medians)
    return rate


def state(database_url: str) -> dict[str, Any]:
    """Return the number of leaves, and the tables of the hot path that have dead rows."""
    with connect_database(database_url, "bench") as session:
        leaves = session.execute(LEAVES).fetchone()
        dead = session.execute(DEAD).fetchall()
    return {"leaves": leaves[0] if leaves else 0, "dead_rows": dict(dead)}


if __name__ == "__main__":
    raise SystemExit(main())
