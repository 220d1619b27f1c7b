"""Kafka refuses one record, and the library throws the others of its transaction away unsent."""

from __future__ import annotations

from uuid import uuid4

import pytest

from outbox.kafka.client_config import producer_config
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.relay.protocol.state import Refusal, Refused
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    LARGE,
    SMALLEST,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

MANY = 20_000
"""More than the library sends before the refusal comes."""


def test_f15_what_was_thrown_away_unsent_is_not_blamed_for_the_refusal_of_another_record(
    world: RelayWorld,
) -> None:
    servers, installation = world.bootstrap_servers, uuid4()
    small = make_topic(servers, partitions=1, config={"max.message.bytes": str(SMALLEST)})
    publisher = KafkaPublisher(lambda name: producer_config(servers, {}, f"beside.{name}"), SHARD)
    publisher.fence(installation)
    publisher.begin()
    large = Record(small, b"k", b"." * LARGE, None, ())
    other = Record(world.topic, b"k", b"v" * 500, None, ())
    delivery = publisher.publish([large, *[other] * MANY], b"", apart=True)
    publisher.drop()
    assert delivery.good < MANY
    assert delivery.refused == Refusal(0, "MSG_SIZE_TOO_LARGE", Refused.RECORD, named=True)
