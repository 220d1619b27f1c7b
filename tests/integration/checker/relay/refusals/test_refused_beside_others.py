"""Kafka refuses one record, and the library throws the others of its transaction away unsent."""

from __future__ import annotations

from uuid import uuid4

import pytest

from outbox.kafka.client_config import producer_config
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.postgres.relay import commit_log
from outbox.relay.protocol.record_hold import RETRY_LAST_SECONDS
from outbox.relay.protocol.state import Refusal, Refused
from tests.fixtures_kafka import make_topic
from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    LARGE,
    SMALLEST,
    drops,
    large,
    lower,
    open_rows,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

MANY = 20_000
"""More than the library sends before the refusal comes."""
FEW = 10
"""More producers than one batch needs; to halve it for each record takes some hundred."""


def commit_keys(world: RelayWorld, values: dict[bytes, bytes]) -> None:
    """Commit one message for each key, in one flush."""
    template = world.message()
    world.commit(*(replace(template, key=key, value=value) for key, value in values.items()))


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


def test_f15_each_record_that_is_too_large_is_named_among_any_number_of_others(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_log, "RETRY_FIRST_SECONDS", RETRY_LAST_SECONDS)
    lower(world)
    values = {
        b"%d" % number: b"%d" % number if number % 50 else large(number) for number in range(500)
    }
    commit_keys(world, values)
    drain(world.relay())
    assert world.values(490) == [value for value in values.values() if len(value) < LARGE]
    assert open_rows(world) == 10
    assert drops(world, "refused") < 10 + FEW
