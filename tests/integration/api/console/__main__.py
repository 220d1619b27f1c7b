"""Takes the pictures of docs/console.md: `make pictures`, with Chromium on the PATH.

It starts PostgreSQL, Kafka, the API and a browser, makes an installation with some trouble, and
writes each page into docs/images.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.fixtures_databases import make_database, migrate
from tests.fixtures_kafka import make_topic
from tests.fixtures_paths import PROJECT
from tests.integration.api.console.browser.fixtures_desk import sitting
from tests.integration.api.console.browser.fixtures_trouble import let_tasks_beat, make_trouble
from tests.integration.api.fixtures_service import TOPIC

PICTURES: Final = {
    "start": "/",
    "message": "/messages/{message}",
    "parked": "/parked",
    "group": "/groups/billing",
    "publishing": "/publishing",
    "messages": "/messages?producer_group=billing&tag=shown",
}
"""The page of each picture, below the prefix."""
CALM: Final = 4
"""Seconds before a picture: what is remembered of the stores is then new."""


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
        shown = await make_trouble(desk)
        await asyncio.to_thread(let_tasks_beat, database_url)
        await asyncio.sleep(CALM)
        for page, path in PICTURES.items():
            await desk.open(path.format(message=shown))
            taken = await desk.tab.picture(width=1080, height=640)
            file = PROJECT / "docs" / "images" / f"console-{page}.png"
            await asyncio.to_thread(file.write_bytes, taken)


if __name__ == "__main__":
    main()
