"""Properties that delivery depends on cannot be changed by an operator."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.errors import ConfigurationError
from outbox.kafka.client_config import (
    PRODUCER_FIXED,
    admin_client,
    consumer_config,
    producer_config,
    refuse_unusable,
    transactional_id,
)


@pytest.mark.parametrize(
    "name",
    [
        "acks",
        "isolation.level",
        "transactional.id",
        "bootstrap.servers",
        "delivery.timeout.ms",
    ],
)
def test_a_property_that_delivery_depends_on_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"OUTBOX_KAFKA_CONFIG: {name} is fixed"):
        producer_config("127.0.0.1:1", {name: "x"}, "id")
    with pytest.raises(ConfigurationError):
        consumer_config("127.0.0.1:1", {name: "x"})


def test_other_properties_go_through_and_replace_defaults() -> None:
    config = producer_config("127.0.0.1:1", {"security.protocol": "SSL", "linger.ms": 0}, "id")
    assert (config["security.protocol"], config["linger.ms"]) == ("SSL", 0)
    assert config["transactional.id"] == "id"
    assert PRODUCER_FIXED.items() <= config.items()


@pytest.mark.parametrize("secret", ["canary-v3ry-secret", "canary " * 200, "msg,canary=="])
@pytest.mark.parametrize(
    "config",
    [
        {"security.protocol": ...},
        {"sasl.mechanisms": ..., "security.protocol": "SASL_SSL"},
        {"debug": ...},
    ],
    ids=lambda config: next(iter(config)),
)
def test_a_secret_in_the_place_of_another_value_is_not_quoted(
    config: dict[str, Any], secret: str
) -> None:
    given = {name: secret if value is ... else value for name, value in config.items()}
    for make in (refuse_unusable, lambda given: admin_client("127.0.0.1:1", given)):
        with pytest.raises(ConfigurationError, match=r"^OUTBOX_KAFKA_CONFIG: ") as refused:
            make(given)
        assert "canary" not in str(refused.value)
        assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"no.such.property": 1}, "no.such.property"),
        ({"socket.timeout.ms": 60_000}, "socket.timeout.ms"),
        ({"retries": 0}, "retries"),
        ({"linger.ms": 9_000}, "linger.ms"),
    ],
)
def test_properties_that_no_producer_can_have_are_refused_and_named(
    config: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"OUTBOX_KAFKA_CONFIG: .*{named}"):
        refuse_unusable(producer_config("127.0.0.1:1", config, "id"))
    refuse_unusable(producer_config("127.0.0.1:1", {}, "id"))


def test_a_shards_transactional_id_is_always_the_same() -> None:
    assert transactional_id("0f6c", 3, 0) == "outbox.0f6c.3.0"
