"""The parked topic: each parked message is copied with its reason; a copy is no delivery."""

from __future__ import annotations

import pytest

from checker.maintenance.parked_copies import POLL_SECONDS, ParkedCopies
from devservers.kafka import EmbeddedKafka
from outbox.kafka.parked_topic import KafkaParkedTopic
from outbox.messages.message import HalfMessage
from outbox.postgres.maintenance.parked_messages import PostgresParkedMessages
from tests.fixtures_kafka import (
    committed_records,
    make_topic,
    set_max_message_bytes,
)
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

PARK = """
UPDATE outbox.parked_message SET parked_at = clock_timestamp(), resumed_at = NULL, copied_at = NULL
WHERE half_id >= outbox.watermark() >> 20 << 35
"""
COPIED_BEFORE = "UPDATE outbox.parked_message SET copied_at = parked_at"


def copies(world: World, servers: str, topic: str) -> ParkedCopies:
    """Return the task's work on this world."""
    kafka = KafkaParkedTopic(servers, {})
    messages = PostgresParkedMessages(world.pool)
    return ParkedCopies(messages, kafka, topic, FreeLocks(), world.metrics)


async def parked(world: World, count: int = 1) -> list[HalfMessage]:
    """Return messages that were parked after one check without a verdict."""
    await world.execute(COPIED_BEFORE)
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, check_max=1)
        halves = await world.due(group, count)
        await world.check(group)
        await world.pass_time(100)
        await world.check(group)
    assert set(await world.rows("SELECT parked_reason FROM outbox.parked_message")) == {
        ("check_max",)
    }
    return halves


async def test_a_parked_message_is_copied_once_with_its_payload_and_why(
    world: World, kafka_broker: EmbeddedKafka
) -> None:
    servers = kafka_broker.bootstrap_servers
    topic = make_topic(servers, partitions=1)
    [half] = await parked(world)
    task = copies(world, servers, topic)
    assert await task.step() == POLL_SECONDS
    assert await task.step() == POLL_SECONDS
    [record] = committed_records(servers, topic, 1)
    message, headers = half.message, dict(record.headers)
    assert (record.key, record.value) == (message.key, message.value)
    assert headers["outbox_message_id"] == str(half.message_id).encode()
    assert headers["outbox_topic"] == message.topic.encode()
    assert headers["outbox_parked_reason"] == b"check_max"
    assert headers["outbox_check_count"] == b"1"
    await world.execute(PARK)
    await task.step()
    assert len(committed_records(servers, topic, 2)) == 2, "parked again, copied again"


async def test_a_copy_that_kafka_refuses_stops_no_other(
    world: World, kafka_broker: EmbeddedKafka
) -> None:
    servers = kafka_broker.bootstrap_servers
    topic = make_topic(servers, partitions=1)
    set_max_message_bytes(servers, topic, 2_000)
    big, _ = await parked(world, 2)
    await world.execute(
        "UPDATE outbox.half_message SET value = %(value)s WHERE half_id = %(half)s",
        value=b"v" * 5_000,
        half=big.half_id,
    )

    await copies(world, servers, topic).step()
    assert len(committed_records(servers, topic, 1)) == 1
    assert list(await PostgresParkedMessages(world.pool).uncopied(10)) == []
    refused = world.metrics["publish_errors_total"].labels(topic, "MSG_SIZE_TOO_LARGE")
    assert refused._value.get() == 1
