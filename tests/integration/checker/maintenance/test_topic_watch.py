"""The checker sees with the relay's principal what Kafka would refuse, and added partitions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from checker.maintenance.topic_watch import TopicWatch
from devservers.kafka import EmbeddedKafka
from outbox.kafka.topic_view import KafkaTopicView
from outbox.messages.topics import SeenTopic
from outbox.postgres.messages.seen_topics import PostgresSeenTopics
from outbox.postgres.sessions.connections import Pool
from outbox.telemetry.metrics import Metrics
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import HALVES, prepare_body, running, settings_for
from tests.integration.checker.relay.refusals.fixtures_forbidden_topic import forbid
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

TRIES = 200
"""A service that has just started reads what is stored in the background."""


@dataclass
class Ground:
    """A broker, a database, and the watch between them."""

    broker: EmbeddedKafka
    admin: AdminClient
    pool: Pool
    metrics: Metrics

    async def topic(self, **config: str) -> str:
        """Create a topic that has had a message."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        name = make_topic(self.broker.bootstrap_servers, partitions=1, config=settings)
        await select(self.pool, "INSERT INTO outbox.topic (name) VALUES (%s)", name)
        return name

    def view(self) -> KafkaTopicView:
        return KafkaTopicView(self.broker.bootstrap_servers, {})

    async def look(self) -> dict[str, SeenTopic]:
        """Let the watch look once; return what is stored."""
        seen = PostgresSeenTopics(self.pool)
        await TopicWatch(seen, self.view(), FreeLocks(), self.metrics).step()
        return dict(await seen.all())


@pytest.fixture
def ground(kafka_broker: EmbeddedKafka, pool: Pool) -> Ground:
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0})
    return Ground(kafka_broker, admin, pool, Metrics())


async def test_o7_added_partitions_are_reported_to_the_operator(ground: Ground) -> None:
    topic = await ground.topic()
    await ground.look()
    ground.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=60)
    view = ground.view()
    wait_for(lambda: view.read([topic])[topic].partitions == 3)
    for _ in range(2):
        assert (await ground.look())[topic].partitions == 3
    rows = await select(
        ground.pool,
        "SELECT target, detail FROM outbox.audit_log WHERE action = 'topic.grew' AND target = %s",
        topic,
    )
    assert [tuple(row) for row in rows] == [(topic, {"before": 1, "after": 3})]
    added = ground.metrics["topic_partitions_added_total"].labels(topic)
    assert added._value.get() == 2


async def test_a_prepare_that_can_never_be_published_is_refused_unless_kafka_is_away(
    ground: Ground, database_url: str
) -> None:
    small, closed = await ground.topic(max_message_bytes="2000"), await ground.topic()
    compacted = await ground.topic(cleanup_policy="compact")
    forbid(ground.broker.bootstrap_servers, closed)
    await ground.look()
    catalogue = MemoryTopicCatalogue(counts={small: 1, closed: 1, compacted: 1})
    async with running(settings_for(database_url), catalogue) as service:
        await service.put_group()
        for _ in range(TRIES):
            if (await service.prepare(topic=closed)).status_code == 403:
                break
            await asyncio.sleep(0.05)
        fits = await service.prepare(topic=small, value="v" * 1700)
        large = await service.prepare(topic=small, value="v" * 1900)
        unkeyed = [prepare_body(topic=compacted, value=value) for value in ("v", None)]
        batch = await service.client.post(f"{HALVES}/batch", json={"items": unkeyed})
        keyed = await service.prepare(topic=compacted, key="k", value=None)
        forbidden = await service.prepare(topic=closed)
    assert (fits.status_code, large.status_code, forbidden.status_code) == (201, 413, 403)
    assert large.json()["code"] == "payload-too-large"
    assert [item["status"] for item in batch.json()["items"]] == [422, 422]
    assert keyed.status_code == 201
    assert forbidden.json()["code"] == "topic-not-allowed"
    away = MemoryTopicCatalogue(unavailable=True)
    async with running(settings_for(database_url), away) as service:
        assert (await service.prepare(topic=small, value="v" * 2000)).status_code == 201
        assert (await service.prepare(topic=closed)).status_code == 201
