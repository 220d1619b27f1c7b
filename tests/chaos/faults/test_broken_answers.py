"""A connection that breaks during an answer of Kafka is an outage, never a fact about the log."""

from __future__ import annotations

import pytest

from chaos.proxies.rules import Action, Rule
from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import admin_client, consumer_config
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.kafka.progress_topic import progress_topic_facts
from tests.chaos.conftest import ProxiedBroker
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.chaos]

LIST_OFFSETS, DESCRIBE_CONFIGS = "2", "32"
"""Numbers of requests in Kafka's protocol."""


def test_no_log_bound_is_invented_when_the_connection_breaks(proxied: ProxiedBroker) -> None:
    servers = proxied.broker.bootstrap_servers
    topic = make_topic(servers, partitions=1)
    log = KafkaProgressLog(admin_client(servers, {}), consumer_config(servers, {}), 0, topic=topic)

    def answered() -> bool:
        try:
            return log.bounds() == (0, 0)
        except KafkaUnavailable:
            return False

    wait_for(answered)
    rule = proxied.link.arm(Rule(name=LIST_OFFSETS, action=Action.DROP_ANSWER, nth=2))
    with pytest.raises(KafkaUnavailable):
        log.bounds()
    proxied.link.disarm(rule)
    wait_for(answered)


def test_settings_that_arrive_too_late_are_an_outage(proxied: ProxiedBroker) -> None:
    servers = proxied.broker.bootstrap_servers
    wait_for(lambda: progress_topic_facts(servers, timeout_seconds=20).brokers == 1)
    held = proxied.link.arm(Rule(name=DESCRIBE_CONFIGS, action=Action.STALL, seconds=5.0))
    with pytest.raises(KafkaUnavailable, match="in time"):
        progress_topic_facts(servers, timeout_seconds=1)
    proxied.link.disarm(held)
