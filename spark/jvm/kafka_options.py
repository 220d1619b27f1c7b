"""The librdkafka properties of ``OUTBOX_KAFKA_CONFIG`` as options of Spark's Java client.

Only properties that open a connection are translated, not the tuning of the relay's producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outbox.errors import ConfigurationError

READ_OPTIONS: Final[Mapping[str, str]] = {
    "kafka.client.id": "outbox-reconcile",
    "kafka.isolation.level": "read_committed",
    "failOnDataLoss": "true",
    "includeHeaders": "true",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}
"""A broker's quota can name the client id. A range ends with the marker of a transaction. Without
``fetch.max.wait.ms`` the broker delays the final fetch of each partition by half a second, because
it waits for records after the range. Nobody reads the metrics of a client, and each partition has
one."""
SAME_NAME: Final = frozenset({"security.protocol", "client.rack", "client.dns.lookup"})
RENAMED: Final[Mapping[str, str]] = {
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}
LOGIN: Final = ("sasl.username", "sasl.password")
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def kafka_options(bootstrap_servers: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of every Kafka read.

    Raises ConfigurationError for a security property that has no translation, rather than
    connecting without it.
    """
    options = {"kafka.bootstrap.servers": bootstrap_servers, **READ_OPTIONS}
    for name, value in config.items():
        if name in SAME_NAME:
            options[f"kafka.{name}"] = str(value)
        elif name in RENAMED:
            options[f"kafka.{RENAMED[name]}"] = str(value)
        elif name.startswith(("ssl.", "sasl.")) and name not in LOGIN:
            raise ConfigurationError(
                f"OUTBOX_KAFKA_CONFIG: {name} has no equivalent in Spark's Kafka client"
            )
    if "ssl.ca.location" in config:
        options["kafka.ssl.truststore.type"] = "PEM"
    if "sasl.username" in config:
        options["kafka.sasl.jaas.config"] = _login(config)
    return options


def _login(config: Mapping[str, Any]) -> str:
    mechanism = str(config.get("sasl.mechanism", config.get("sasl.mechanisms", "PLAIN")))
    module = SCRAM if mechanism.startswith("SCRAM") else PLAIN
    user, password = (_quoted(str(config.get(name, ""))) for name in LOGIN)
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
