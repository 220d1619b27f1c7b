"""How long does a page of the console take after a long history?

Fills one PostgreSQL with published messages and some unpublished ones, then loads each page again
again, one at a time, in the process of the API, beside a broker. Goal: p95 at most 150 ms at ten
million messages, which need about 8 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx2

from api.wiring import build
from benchmarks.cost.history import GROUP, fill
from benchmarks.measure.machine import report, start
from cli.stores.schema import upgrade
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.installation_admin import rebase_installation
from outbox.postgres.operators.operator_view import OperatorView
from outbox.settings.environment import load_settings

FILLED: Final = OperatorAction(operator="bench", reason="a history was filled in", key_id=None)
LEAST: Final = 20
"""Of fewer loads one in twenty is none."""
PATHS: Final = (
    "/ui/",
    f"/ui/?q=group:{GROUP}",
    "/ui/?q=state:published",
    "/ui/overview",
    "/ui/parked",
    "/ui/groups",
    f"/ui/groups/{GROUP}",
    "/ui/publishing",
    "/ui/reconciliations",
    "/ui/audit",
    "/ui/keys",
    "/ui/system",
)


def main() -> None:
    """Run the benchmark on a PostgreSQL that it starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--unpublished", type=int, default=2000)
    parser.add_argument("--loads", type=int, default=100, help="of each page, at least 20")
    parser.add_argument("--keep", type=Path, help="a folder for the history, to measure it again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outbox-console-") as folder:
        server = EmbeddedPostgres((asked.keep or Path(folder)) / "postgres")
        broker = EmbeddedKafka(Path(folder) / "kafka")
        server.start()
        try:
            broker.start()
            ensure_progress_topic(broker.bootstrap_servers)
            start("console", messages=asked.messages, unpublished=asked.unpublished)
            if not _is_filled(server.database_url):
                _fill(server.database_url, asked.messages, asked.unpublished)
            loads = max(LEAST, asked.loads)
            asyncio.run(_load_pages(server.database_url, broker.bootstrap_servers, loads))
        finally:
            broker.kill()
            server.stop()
            if asked.keep is None:
                server.erase()


def _is_filled(database_url: str) -> bool:
    with OperatorView(database_url) as view:
        return view.revision() is not None


def _fill(database_url: str, messages: int, unpublished: int) -> None:
    upgrade(database_url)
    fill(database_url, messages, unpublished)
    # The history has ids that this young server has not reached.
    rebase_installation(database_url, FILLED)


async def _load_pages(database_url: str, servers: str, loads: int) -> None:
    settings = load_settings(
        {},
        {
            "database_url": database_url,
            "kafka_bootstrap_servers": servers,
            "auth_mode": "dev-insecure",
        },
    )
    app = build(settings, listens_on="127.0.0.1")
    async with app.lifespan():
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for path in PATHS:
                await _load(client, path, loads)


async def _load(client: httpx2.AsyncClient, path: str, loads: int) -> None:
    """Load a page once to warm up, then so many times."""
    await client.get(path)
    taken = []
    cpu = time.process_time()
    for _ in range(loads):
        began = time.monotonic()
        answer = await client.get(path)
        taken.append((time.monotonic() - began) * 1000)
        answer.raise_for_status()
    p95 = statistics.quantiles(taken, n=20)[-1]
    report(
        path,
        p50_ms=round(statistics.median(taken), 1),
        p95_ms=round(p95, 1),
        max_ms=round(max(taken), 1),
        # Of this process, without PostgreSQL: it says what a busy machine adds to the times.
        cpu_ms=round((time.process_time() - cpu) * 1000 / loads, 1),
        kilobytes=round(len(answer.content) / 1000),
    )


if __name__ == "__main__":
    main()
