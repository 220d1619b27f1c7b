"""Links to PostgreSQL and Kafka that stand still delay messages and lose none."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from outbox.kafka.progress_topic import ensure_progress_topic
from tests.chaos.conftest import LinkedBroker
from tests.chaos.fixtures_live_service import live_service
from tests.fixtures_kafka import committed_records, make_topic
from tests.fixtures_link import Link, link_to
from tests.fixtures_waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

GROUP = "links"
STILL_SECONDS = 5.0


@contextmanager
def frozen(link: Link) -> Iterator[None]:
    """Let a link pass nothing for some seconds; the block runs meanwhile."""
    healing = threading.Timer(STILL_SECONDS, link.heal)
    link.stand_still()
    healing.start()
    try:
        yield
    finally:
        healing.join()


def test_f12_links_that_stand_still_delay_messages_and_lose_none(
    database_url: str, linked: LinkedBroker, tmp_path: Path
) -> None:
    servers = linked.servers
    ensure_progress_topic(servers, replication=1)
    topic, parts = make_topic(servers, partitions=1), urlsplit(database_url)
    with link_to(parts.port or 0) as postgres:
        host = parts.netloc.replace(f":{parts.port}", f":{postgres.port}")
        url = parts._replace(netloc=host).geturl()
        with live_service(url, servers, tmp_path) as service:
            service.put_group(GROUP, "http://127.0.0.1:9999/check", 3600)

            def stored(value: str) -> bool:
                answer = service.prepare(GROUP, topic, value)
                assert answer.status_code in (201, 503), answer.text
                if answer.status_code == 201:
                    service.commit(answer.json()["message_id"])
                return answer.status_code == 201

            assert stored("before")
            with frozen(postgres):
                wait_for(lambda: stored("postgres"), seconds=120)
            with frozen(linked.link):
                assert stored("kafka")
            records = committed_records(servers, topic, 3)
    # Without a key no order is promised.
    assert Counter(each.value for each in records) == Counter([b"before", b"postgres", b"kafka"])
