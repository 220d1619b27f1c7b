"""A deleted topic holds back its own messages only, also when two checkers share the shards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.load.committed import commit_directly, register
from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from tests.fixtures_kafka import committed_records, delete_topic, make_topic
from tests.fixtures_replacing import replace
from tests.fixtures_separate_broker import separate_broker
from tests.integration.checker.fixtures_checker_process import start_checker

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

GONE = 10
"""Messages of the deleted topic in each shard; those of the live topic come after them."""
LIVE = 600


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A separate broker for this file: its progress topic belongs to one installation at a time."""
    with separate_broker(tmp_path_factory.mktemp("deleted"), progress_topic=True) as broker:
        yield broker.bootstrap_servers


def commit_everywhere(url: str, topic: str, each: int) -> None:
    """Commit that many messages of the topic in each shard, each with a key of its own."""
    with closing(connect(url, "test")) as connection:
        template = register(connection, topic)
        for shard in range(SHARDS):
            made = [
                replace(template, content=replace(template.content, key=b"%d.%d" % (shard, n)))
                for n in range(each)
            ]
            commit_directly(connection, made, shard)


async def test_two_checkers_publish_a_live_topic_that_waits_behind_a_deleted_one(
    database_url: str, servers: str
) -> None:
    gone, live = make_topic(servers, partitions=1), make_topic(servers, partitions=1)
    commit_everywhere(database_url, gone, GONE)
    commit_everywhere(database_url, live, LIVE)
    delete_topic(servers, gone)
    relaying = [
        await start_checker(
            "--only", "relay", database_url=database_url, kafka_bootstrap_servers=servers
        )
        for _ in range(2)
    ]
    try:
        found = await asyncio.to_thread(committed_records, servers, live, SHARDS * LIVE)
    finally:
        said = [(await checker.stop())[1] for checker in relaying]
    assert len(found) == SHARDS * LIVE
    assert "AdminShutdown" not in "".join(said), "a checker has ended the other's session"
