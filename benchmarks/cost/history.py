"""What do `/metrics`, a list of a state and the deletion of a group cost after a long history?

Fills one PostgreSQL with messages that are published and passed by every reader, and leaves some
unpublished: three, or a backlog of relays that have stopped. Then each question is asked: tuples
read, and milliseconds. Ten million messages need about 8 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.load.committed import register
from benchmarks.load.history import (
    LEAF_XIDS,
    check_all,
    commit_flushes,
    publish_history,
    tuples_read,
)
from benchmarks.measure.machine import report, start
from cli.stores.schema import upgrade
from devservers.postgres import EmbeddedPostgres
from outbox.errors import GroupInUse
from outbox.messages.message import State
from outbox.operators.message_view import MessageFilter
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.maintenance.gauges import PostgresGauges
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.sessions.connections import Pool, connect, make_pool

GROUP: Final = "billing"


def main() -> None:
    """Run the benchmark on a PostgreSQL that it starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--unpublished", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outbox-history-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres")
        server.start()
        try:
            upgrade(server.database_url)
            start("history", messages=asked.messages, unpublished=asked.unpublished)
            fill(server.database_url, asked.messages, asked.unpublished)
            asyncio.run(_ask(server.database_url))
        finally:
            server.stop()
            server.erase()


def fill(database_url: str, messages: int, unpublished: int) -> None:
    """Store messages that are published, and some that are not yet."""
    with connect(database_url, "bench") as session:
        known = register(session, "invoices", GROUP)
        free = publish_history(session, known.producer_group_id, known.topic_id, messages)
        late = range(free, free + unpublished)
        for leaf in range(free // LEAF_XIDS + 1, late[-1] // LEAF_XIDS + 1):
            session.execute("SELECT outbox.create_leaf(%s)", (leaf,))
        commit_flushes(session, known.producer_group_id, known.topic_id, late)
        check_all(session, known.producer_group_id, late[-1])


async def _ask(database_url: str) -> None:
    async with make_pool(database_url, "bench", pool_max=1) as pool:
        browser = PostgresMessageBrowser(pool)
        groups = PostgresProducerGroups(pool, key_ring(None, insecure=True))

        async def delete() -> None:
            with suppress(GroupInUse):
                await groups.delete(GROUP, None, None)

        questions: dict[str, Callable[[], Awaitable[object]]] = {
            "metrics": PostgresGauges(pool).read,
            "list COMMITTED": lambda: browser.page(MessageFilter(state=State.COMMITTED)),
            "list PREPARED": lambda: browser.page(MessageFilter(state=State.PREPARED)),
            "delete group": delete,
        }
        for question, ask in questions.items():
            await _measure(pool, question, ask)


async def _measure(pool: Pool, question: str, ask: Callable[[], Awaitable[object]]) -> None:
    """Ask twice: the first time reads from disk and prepares the plans."""
    await ask()
    before = await tuples_read(pool)
    began = time.monotonic()
    await ask()
    milliseconds = (time.monotonic() - began) * 1000
    read = await tuples_read(pool) - before
    report(question, tuples_read=read, milliseconds=round(milliseconds, 1))


if __name__ == "__main__":
    main()
