from __future__ import annotations

import pytest

from outbox.errors import ConfigurationError
from spark.jvm.kafka_options import kafka_options


def test_every_read_is_committed_and_fails_on_a_hole() -> None:
    options = kafka_options("broker:9092", {})
    assert options["kafka.isolation.level"] == "read_committed"
    assert options["failOnDataLoss"] == "true"
    assert options["includeHeaders"] == "true"


def test_a_quota_of_the_brokers_can_name_what_reads() -> None:
    assert kafka_options("broker:9092", {})["kafka.client.id"] == "outbox-reconcile"


def test_a_login_is_written_as_java_expects_it() -> None:
    options = kafka_options(
        "broker:9092",
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "audit",
            "sasl.password": 'a"b\\c',
            "ssl.ca.location": "ca.pem",
        },
    )
    assert options["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="audit" password="a\\"b\\\\c";'
    )
    assert options["kafka.ssl.truststore.type"] == "PEM"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"ssl.key.pem": "-----BEGIN EC PRIVATE KEY-----"}, "no PEM key in"),
        (
            {"ssl.key.pem": "-----BEGIN ENCRYPTED PRIVATE KEY-----"},
            "password than ssl.key.password",
        ),
        ({"ssl.key.location": "/nowhere"}, "ssl.key.location: no readable PEM file"),
    ],
)
def test_a_key_that_java_cannot_read_is_refused(config: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        kafka_options("broker:9092", config)


def test_a_security_property_without_translation_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"sasl\.oauthbearer\.config"):
        kafka_options("broker:9092", {"sasl.oauthbearer.config": "x"})


def test_tuning_of_the_producer_is_left_out() -> None:
    assert "kafka.linger.ms" not in kafka_options("broker:9092", {"linger.ms": 5})
