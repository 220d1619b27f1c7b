"""The librdkafka properties of ``OUTBOX_KAFKA_CONFIG`` as options of Spark's Java client.

Only properties that open a connection are translated, not the tuning of the relay's producer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
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
HOST_NAMES: Final = "ssl.endpoint.identification.algorithm"
UNCHECKED: Final = "none"
"""Where librdkafka is not to compare the name of the host; Java's word for it is empty."""
NAMES: Final[Mapping[str, str]] = {
    "security.protocol": "security.protocol",
    "client.rack": "client.rack",
    "client.dns.lookup": "client.dns.lookup",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.key.password": "ssl.key.password",
    HOST_NAMES: HOST_NAMES,
}
"""Java's name for each property of librdkafka."""
FILES: Final = frozenset({"ssl.certificate.location", "ssl.key.location"})
"""Java reads certificate and key from one file, so the text of both is passed."""
KEY: Final = "kafka.ssl.keystore.key"
PKCS8: Final = re.compile("BEGIN (ENCRYPTED )?PRIVATE KEY")
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
        if name in NAMES:
            options[f"kafka.{NAMES[name]}"] = _in_java(name, str(value))
        elif name.startswith(("ssl.", "sasl.")) and name not in LOGIN:
            raise ConfigurationError(
                f"OUTBOX_KAFKA_CONFIG: {name} has no equivalent in Spark's Kafka client"
            )
    if not config.keys().isdisjoint({"ssl.ca.location", "ssl.ca.pem"}):
        options["kafka.ssl.truststore.type"] = "PEM"
    if KEY in options:
        options["kafka.ssl.keystore.type"] = "PEM"
        _refuse_unreadable(options[KEY])
    if "sasl.username" in config:
        options["kafka.sasl.jaas.config"] = _login(config)
    return options


def _in_java(name: str, text: str) -> str:
    """Return the value that means the same."""
    if name in FILES:
        try:
            return Path(text).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            line = f"OUTBOX_KAFKA_CONFIG: {name}: no readable PEM file"
            raise ConfigurationError(line) from None
    return "" if (name, text) == (HOST_NAMES, UNCHECKED) else text


def _refuse_unreadable(key: str) -> None:
    if PKCS8.search(key) is None:
        cure = "`openssl pkcs8 -topk8 -nocrypt` translates it"
        raise ConfigurationError(f"OUTBOX_KAFKA_CONFIG: Spark needs the key in PKCS#8: {cure}")


def _login(config: Mapping[str, Any]) -> str:
    mechanism = str(config.get("sasl.mechanism", config.get("sasl.mechanisms", "PLAIN")))
    module = SCRAM if mechanism.startswith("SCRAM") else PLAIN
    user, password = (_quoted(str(config.get(name, ""))) for name in LOGIN)
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
