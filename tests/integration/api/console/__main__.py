"""Takes the pictures of docs/console.md: `make pictures`, with Chromium on the PATH.

It starts PostgreSQL, Kafka, the API and a browser, makes an installation with some trouble, and
writes each page light and dark into docs/images.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final

import psycopg

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.fixtures_databases import make_database, migrate
from tests.fixtures_kafka import make_topic
from tests.integration.api.console.browser.fixtures_desk import Desk, sitting
from tests.integration.api.console.fixtures_overtaken_time import CHECKED
from tests.integration.api.console.fixtures_pictures import HEIGHT, PICTURES, WIDTH, name_of
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import PARK, select
from tests.integration.api.fixtures_service import HALVES, TOPIC

CALM: Final = 4
"""Seconds before a picture: what is remembered of the stores is then new."""
GROUPS: Final = ("billing", "shipping", "loyalty")


def main() -> None:
    """Take every picture."""
    with tempfile.TemporaryDirectory(prefix="outbox-pictures-") as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres")
        kafka = EmbeddedKafka(Path(folder) / "kafka")
        try:
            postgres.start()
            kafka.start()
            ensure_progress_topic(kafka.bootstrap_servers)
            make_topic(kafka.bootstrap_servers, partitions=3, name=TOPIC)
            url = make_database(postgres.database_url, None)
            migrate(url)
            asyncio.run(_take(url, kafka.bootstrap_servers))
        finally:
            kafka.kill()
            postgres.stop()
            postgres.erase()


async def _take(database_url: str, servers: str) -> None:
    async with sitting(database_url, kafka_bootstrap_servers=servers) as desk:
        shown = await _trouble(desk)
        await asyncio.to_thread(_let_tasks_beat, database_url)
        await asyncio.sleep(CALM)
        for page, path in PICTURES.items():
            await desk.open(path.format(message=shown))
            for dark in (False, True):
                taken = await desk.tab.picture(width=WIDTH, height=HEIGHT, dark=dark)
                await asyncio.to_thread(name_of(page, dark=dark).write_bytes, taken)


async def _trouble(desk: Desk) -> str:
    """Make messages in each state and what operators did; return the message to show."""
    for group in GROUPS[1:]:
        await desk.listener.put_group(group)
    for number in range(7701, 7704):
        await desk.prepare(producer_group="shipping", transaction_id=f"parcel-{number}")
    await select(desk.pool, CHECKED, "timeout", None)
    for number in range(7704, 7709):
        await desk.prepare(producer_group="billing", transaction_id=f"invoice-{number}")
    await select(desk.pool, CHECKED, "http_error", 500)
    await select(desk.pool, PARK)
    held = await desk.prepare(transaction_id="invoice-7720", key="cust-58")
    await desk.listener.client.post(f"{HALVES}/{held}/end", json={"decision": "COMMIT"})
    await hold(desk.pool, held)
    for number in range(7721, 7727):
        committed = await desk.prepare(transaction_id=f"invoice-{number}", tags=["shown"])
        if number % 2:
            body = {"decision": "COMMIT"}
            await desk.listener.client.post(f"{HALVES}/{committed}/end", json=body)
    shown = await desk.prepare(transaction_id="invoice-7731", key="cust-58", tags=["shown"])
    await select(desk.pool, CHECKED, "unknown", 200)
    who = {"operator": "Ada", "reason": "the order service is back"}
    for path in (f"{HALVES}/{shown}/recheck", "/v1/producer-groups/loyalty/pause"):
        body = who if path.endswith("recheck") else {"reason": "moved to another cluster"}
        answer = await desk.listener.client.post(path, json=body)
        assert answer.status_code < 300, answer.text
    return shown


def _let_tasks_beat(database_url: str) -> None:
    """Write the heartbeats of a checker, and the halt of a shard."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for task in ("relay", "check", "sweep", "retire"):
            connection.execute(
                "INSERT INTO outbox.progress (name, position, position_n, updated_at)"
                " VALUES (%s, 0, 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING",
                [f"heartbeat:{task}"],
            )
        connection.execute(
            "INSERT INTO outbox.progress (name, position, position_n, halt_reason)"
            " VALUES ('relay:3', 0, 0, 'progress_lost')"
        )


if __name__ == "__main__":
    main()
