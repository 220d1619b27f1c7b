"""What do many leaves cost PostgreSQL in each hot statement?

One PostgreSQL has two databases, one with few leaves and one with many. Each statement runs on both
in turn, through the code of the service. The figure is CPU microseconds of the session's backend;
the ratio is the median of those of the turns. Exit code 1: one is more than a tenth dearer.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from msgspec import structs

from benchmarks.load.committed import register
from benchmarks.measure.machine import report, start
from cli.stores.schema import upgrade
from devservers.postgres import EmbeddedPostgres
from outbox.messages.manifest import Position
from outbox.messages.message import Content, End, Message, Prepared, Resolution
from outbox.messages.message_id import LOW_BITS, HalfId, shard_in
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.relay.commit_watch import PostgresCommitWatch
from outbox.postgres.sessions.connections import (
    PLAN_EACH_CALL,
    PLAN_ONCE,
    Connection,
    connect,
    make_pool,
)

FLUSHES: Final = {1: 200, 500: 6}
"""The flushes of a turn, by their messages."""
READS: Final = {1: 200, 500: 10}
"""The relay's reads of a turn, by the messages that each returns at most."""
LOOKS: Final = 200
LIMIT: Final = 1.1
OF_XID: Final = "SELECT outbox.current_xid()"
WATCH_PLANS: Final = PLAN_EACH_CALL

Figures = dict[str, float]


def main() -> int:
    """Return 1 if a statement is more than a tenth dearer with many leaves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leaves", type=int, nargs=2, default=[4, 64])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--set", nargs="*", default=[], help="settings of the server, NAME=VALUE")
    asked = parser.parse_args()
    settings = dict(each.split("=", 1) for each in asked.set)
    with tempfile.TemporaryDirectory(prefix="outbox-leaves-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres", settings=settings)
        server.start()
        try:
            urls = [database(server, count) for count in asked.leaves]
            start("leaves", leaves=asked.leaves, turns=asked.turns, **settings)
            return asyncio.run(compare(urls, asked.turns))
        finally:
            server.stop()
            server.erase()


def database(server: EmbeddedPostgres, leaves: int) -> str:
    """Create a database with so many leaves; return its address."""
    name = f"leaves_{leaves}"
    with connect(server.database_url, "bench") as session:
        session.execute(f"CREATE DATABASE {name}".encode())
    url = server.url_of(name)
    upgrade(url)
    with connect(url, "bench") as session:
        for leaf in range(leaves):
            session.execute("SELECT outbox.create_leaf(%s)", (leaf,))
    return url


async def compare(urls: Sequence[str], turns: int) -> int:
    """Measure both databases in turn, and report the medians and their ratio."""
    found: list[dict[str, list[float]]] = [defaultdict(list), defaultdict(list)]
    for turn in range(turns + 1):
        for place in (0, 1) if turn % 2 else (1, 0):
            for what, micros in (await measure(urls[place])).items():
                if turn:  # the first one warms up
                    found[place][what].append(micros)
    dear = False
    for what, few in found[0].items():
        many = found[1][what]
        ratio = statistics.median(b / a for a, b in zip(few, many, strict=True))
        dear |= ratio > LIMIT
        medians = {
            "few_us": round(statistics.median(few)),
            "many_us": round(statistics.median(many)),
        }
        report(what, **medians, ratio=round(ratio, 3))
    return int(dear)


async def measure(url: str) -> Figures:
    """Return the microseconds of each statement, on new sessions."""
    found: Figures = {}
    with closing(connect(url, "bench")) as session:
        message = template(session)
    async with make_pool(url, "bench", pool_max=1, pool_min=1, plans=PLAN_ONCE) as pool:
        store = PostgresHalfStore(pool)
        async with pool.connection() as connection:
            backend = connection.info.backend_pid
        for size, flushes in FLUSHES.items():
            _, first = await flush(store, backend, [message] * size, 3)
            figures, _ = await flush(store, backend, [message] * size, flushes)
            found |= {**figures, f"read {size}": read(url, first, size, READS[size])}
    return {**found, "look": look(url)}


def template(session: Connection) -> Message:
    """Return the message that all are like; their key puts them into one shard."""
    known = register(session, "points-earned")
    content = Content(topic="points-earned", value=b"x" * 256, key=b"k")
    return structs.replace(known, content=content)


async def flush(
    store: PostgresHalfStore, backend: int, messages: Sequence[Message], flushes: int
) -> tuple[Figures, HalfId]:
    """Prepare and end messages; return the microseconds of each kind of flush, and the first id."""
    ends: list[list[End]] = []
    with spent(backend) as of_prepare:
        for _ in range(flushes):
            prepared = await store.prepare(messages)
            halves = [each.half for each in prepared if isinstance(each, Prepared)]
            ends.append([
                End(half_id=half.half_id, nonce=half.nonce, decision=Resolution.COMMIT)
                for half in halves
            ])  # fmt: skip
    with spent(backend) as of_end:
        for each in ends:
            await store.end(each)
    size = len(messages)
    found = {f"prepare {size}": of_prepare() / flushes, f"end {size}": of_end() / flushes}
    return found, ends[0][0].half_id


def read(url: str, first: HalfId, most: int, reads: int) -> float:
    """Read what was committed after a prepare, as the relay does; return a read's microseconds."""
    sessions, after = Sessions(PLAN_ONCE), Position(first >> LOW_BITS, 0)
    shard = shard_in(first)
    log = PostgresCommitLog(url, shard, batch_max=most, owner="bench", connect=sessions.connect)
    with closing(log):
        for _ in range(3):
            log.read(after)
        with spent(sessions.backend) as of_reads:
            for _ in range(reads):
                if len(log.read(after).messages) != most:
                    raise SystemExit("messages are missing")
    return of_reads() / reads


def look(url: str) -> float:
    """Look for new commits as the watch does; return the microseconds of a look that finds some."""
    sessions = Sessions(WATCH_PLANS)
    watch = PostgresCommitWatch(url, sessions.connect)
    with closing(connect(url, "other")) as other, closing(watch):
        watch.fresh_shards()
        with spent(sessions.backend) as of_looks:
            for _ in range(LOOKS):
                one(other, OF_XID)
                watch.fresh_shards()
    return of_looks() / LOOKS


class Sessions:
    """Opens a session and remembers its backend."""

    def __init__(self, plans: str) -> None:
        self._plans = plans
        self.backend = 0

    def connect(self, url: str, application: str) -> Connection:
        """Open a session."""
        connection = connect(url, application, self._plans)
        self.backend = connection.info.backend_pid
        return connection


def one(session: Connection, statement: str) -> int:
    """Return the one number that a statement returns."""
    row = session.execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def spent(backend: int) -> Iterator[Callable[[], float]]:
    """Yield what returns, after the block, the CPU microseconds that the backend used."""
    began = cpu_micros(backend)
    yield lambda: ended - began
    ended = cpu_micros(backend)


def cpu_micros(backend: int) -> float:
    """Return the CPU microseconds that a process has used."""
    return int(Path(f"/proc/{backend}/schedstat").read_text().split()[0]) / 1000


if __name__ == "__main__":
    raise SystemExit(main())
