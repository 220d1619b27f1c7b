"""The permissions and the connection settings of docs/security.md, on a broker that needs both."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from structlog.testing import capture_logs

from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC, progress_topic_facts
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.kafka.topic_view import KafkaTopicView
from outbox.postgres.sessions.connections import connect
from outbox.reconciliation.log import LogEnd
from tests.integration.checker.relay.fixtures_relay import drain
from tests.integration.kafka.fixtures_secured_broker import TOPIC, SecuredBroker, secured_world

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]


def test_the_checkers_principal_publishes(database_url: str, secured: SecuredBroker) -> None:
    config = secured.config("outbox-checker")
    facts = progress_topic_facts(secured.servers, config)
    assert (facts.partitions, facts.settings["cleanup.policy"]) == (16, "delete")
    with connect(database_url, "test") as connection:
        world = secured_world(secured, database_url, connection)
        batch_no = "SELECT coalesce(max(batch_no), 0) FROM outbox.progress WHERE name = 'relay:3'"
        before = world.one(batch_no)
        world.commit_values(b"one", b"two")
        with capture_logs() as logs:
            relay = world.relay()
            drain(relay)
            relay.close()
        assert not [each for each in logs if each["log_level"] in ("warning", "error")]
        assert world.one(batch_no) == before + 1
    seen = KafkaTopicView(secured.servers, config).read([TOPIC])[TOPIC]
    assert seen.may_write is True
    assert seen.max_message_bytes is not None


def test_the_apis_principal_sees_topics_and_writes_none(secured: SecuredBroker) -> None:
    seen = KafkaTopicCatalogue(secured.servers, secured.config("outbox-api")).partitions()
    assert (seen[TOPIC], seen[PROGRESS_TOPIC]) == (1, 16)
    assert refusal(secured, "outbox-api", TOPIC) == "TOPIC_AUTHORIZATION_FAILED"


def test_the_audits_principal_reads_both_topics_and_writes_none(secured: SecuredBroker) -> None:
    reader = KafkaLogReader(secured.servers, secured.config("outbox-reconcile"))
    topics = [PROGRESS_TOPIC, TOPIC]
    parts = reader.partitions(topics)
    assert len(parts) == 17
    facts = reader.describe(topics)
    assert set(facts) == set(topics)
    assert not [each for each in facts.values() if isinstance(each, str)]
    starts = reader.offsets(parts, LogEnd.START).offsets
    assert set(reader.next_records(starts)) == set(parts)
    for topic in topics:
        assert refusal(secured, "outbox-reconcile", topic) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("topic", [PROGRESS_TOPIC, TOPIC])
def test_a_stranger_writes_neither_manifests_nor_records(
    secured: SecuredBroker, topic: str
) -> None:
    assert refusal(secured, "stranger", topic) in (
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PART",
    )


def test_a_stranger_cannot_fence_a_relay(secured: SecuredBroker) -> None:
    config = {**secured.config("stranger"), "transactional.id": "outbox.any.3"}
    producer = Producer({"bootstrap.servers": secured.servers, "log_level": 0, **config})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        producer.init_transactions(60)


def refusal(secured: SecuredBroker, principal: str, topic: str) -> str | None:
    """Return the name of the error that a principal's record gets; None if it was taken."""
    config = {**secured.config(principal), "message.timeout.ms": 20_000}
    producer = Producer({"bootstrap.servers": secured.servers, "log_level": 0, **config})
    told: list[str | None] = []
    heard = threading.Event()

    def report(error: Any, _: Any) -> None:
        told.append(error and error.name())
        heard.set()

    producer.produce(topic, b"forged", on_delivery=report)
    producer.flush(60)
    assert heard.is_set()
    return told[0]
