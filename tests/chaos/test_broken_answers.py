"""A connection that breaks while Kafka answers is an outage, and never a fact about the log."""

from __future__ import annotations

import pytest

from chaos.proxies.rules import Action, Rule
from outbox.errors import KafkaUnavailable
from outbox.publication.kafka_settings import consumer_config
from outbox.publication.progress_log import KafkaProgressLog, admin_client
from tests.chaos.conftest import ProxiedBroker
from tests.kafka import make_topic
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.chaos]

LIST_OFFSETS = "2"
"""The number of the request in Kafka's protocol."""


def test_no_bound_of_a_log_is_made_up_when_the_connection_breaks(proxied: ProxiedBroker) -> None:
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
