"""A login that is refused, such as after a rotation of passwords: the error says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

import pytest

from outbox.errors import KafkaUnavailable
from outbox.kafka import progress_topic
from outbox.kafka.client_config import producer_config
from outbox.kafka.progress_topic import progress_topic_facts
from outbox.kafka.publisher import KafkaPublisher
from tests.integration.kafka.fixtures_secured_broker import SecuredBroker

pytestmark = [pytest.mark.kafka, pytest.mark.deep]

SHORT_SECONDS: Final = 2.0
OLD_PASSWORD: Final = {"sasl.password": "an old password"}


def config(secured: SecuredBroker, changed: Mapping[str, Any]) -> dict[str, Any]:
    return {**secured.config("outbox-checker"), **changed}


def test_a_password_that_is_refused_is_named(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_topic, "REQUEST_SECONDS", SHORT_SECONDS)
    with pytest.raises(KafkaUnavailable, match=r"failure: .*SASL auth.*invalid cred") as found:
        progress_topic_facts(secured.servers, config(secured, OLD_PASSWORD))
    assert "password" not in str(found.value)


def test_a_relay_whose_password_has_changed_names_it_when_it_opens_a_producer(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that are open stay open, so its other requests go on."""
    changed = config(secured, OLD_PASSWORD)
    relay = KafkaPublisher(lambda name: producer_config(secured.servers, changed, f"x.{name}"), 0)
    with pytest.raises(KafkaUnavailable, match="invalid credentials"):
        relay.fence(uuid4(), 0, SHORT_SECONDS)
    relay.drop()
