"""Settings of a topic that refuse a record for ever are a refusal, and no doubt."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

import pytest

from outbox.kafka.client_config import producer_config
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.relay.protocol.state import Refusal, Refused
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

NO_PAST: Final = {"message.timestamp.before.max.ms": "0"}
"""Each record is older than the moment in which the broker looks at it."""
SHORT_SEGMENTS: Final = {"segment.bytes": str(1 << 20), "max.message.bytes": str(4 << 20)}
MOST_BYTES: Final = {"message.max.bytes": 4 << 20}


@pytest.mark.parametrize(
    ("settings", "size", "error", "scope"),
    [
        (NO_PAST, 1, "INVALID_TIMESTAMP", Refused.TOPIC),
        (SHORT_SEGMENTS, 2 << 20, "RECORD_LIST_TOO_LARGE", Refused.RECORD),
    ],
    ids=["time", "segment"],
)
def test_f15_a_refusal_for_ever_is_no_doubt(
    world: RelayWorld, settings: dict[str, str], size: int, error: str, scope: Refused
) -> None:
    servers = world.bootstrap_servers
    topic = make_topic(servers, partitions=1, config=settings)
    publisher = KafkaPublisher(
        lambda name: producer_config(servers, MOST_BYTES, f"refusing.{name}"), SHARD
    )
    publisher.fence(uuid4())
    publisher.begin()
    delivery = publisher.publish([Record(topic, b"k", b"v" * size, None, ())], b"", apart=True)
    publisher.drop()
    assert delivery.refused == Refusal(0, error, scope, named=True)
