"""The manifests' topic on a real broker."""

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.loopback import free_ports
from outbox.errors import KafkaUnavailable
from outbox.kafka.progress_topic import ensure_progress_topic, progress_topic_facts, topic_settings

pytestmark = pytest.mark.kafka


def test_it_is_created_once_with_sixteen_partitions_and_kept_thirty_days(
    kafka_broker: EmbeddedKafka,
) -> None:
    ensure_progress_topic(kafka_broker.bootstrap_servers)
    assert not ensure_progress_topic(kafka_broker.bootstrap_servers)
    facts = progress_topic_facts(kafka_broker.bootstrap_servers)
    assert (facts.brokers, facts.partitions) == (1, 16)
    assert facts.partition_verification == "true"
    assert facts.settings["cleanup.policy"] == "delete"
    assert int(facts.settings["retention.ms"]) == 30 * 86_400 * 1000


def test_a_setting_left_over_from_an_older_broker_does_not_make_this_one_old(
    kafka_broker: EmbeddedKafka,
) -> None:
    """The shared broker has ``zookeeper.connect``."""
    facts = progress_topic_facts(kafka_broker.bootstrap_servers)
    assert (facts.brokers, facts.older_than_4) == (1, False)


def test_three_replicas_ask_for_two_in_sync() -> None:
    assert topic_settings(3)["min.insync.replicas"] == "2"
    assert topic_settings(1)["min.insync.replicas"] == "1"


def test_a_kafka_that_does_not_answer_raises_kafka_unavailable() -> None:
    with pytest.raises(KafkaUnavailable):
        ensure_progress_topic(f"127.0.0.1:{free_ports(1)[0]}", timeout_seconds=1.0)
