"""The librdkafka properties of ``OUTBOX_KAFKA_CONFIG`` as options of Spark's Java client.

Only properties that open a connection are translated, not the tuning of the relay's producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from outbox.errors import ConfigurationError

READ_OPTIONS: Final[Mapping[str, str]] = {
    "kafka.client.id": "outbox-reconcile",
    "kafka.isolation.level": "read_committed",
    "failOnDataLoss": "true",
    "includeHeaders": "true",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": "4194304",
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}
"""A broker's quota can name the client id. A range ends with the marker of a transaction. Without
``fetch.max.wait.ms`` the broker delays the final fetch of each partition by half a second, because
it waits for records after the range. After each poll Spark asks for both ends of the partition, so
each poll brings many records. Nobody reads the metrics of a client, and each partition has one."""
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
    HOST_NAMES: HOST_NAMES,
}
"""Java's name for each property of librdkafka."""
FILES: Final = frozenset({"ssl.certificate.location", "ssl.key.location"})
"""Java reads certificate and key from one file, so the text of both is passed."""
KEY: Final = "kafka.ssl.keystore.key"
KEY_PASSWORD: Final = "ssl.key.password"
LOGIN: Final = ("sasl.username", "sasl.password")
TRANSLATED: Final = (*LOGIN, KEY_PASSWORD)
"""Parts of another option."""
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
        elif name.startswith(("ssl.", "sasl.")) and name not in TRANSLATED:
            raise ConfigurationError(
                f"OUTBOX_KAFKA_CONFIG: {name} has no equivalent in Spark's Kafka client"
            )
    if not config.keys().isdisjoint({"ssl.ca.location", "ssl.ca.pem"}):
        options["kafka.ssl.truststore.type"] = "PEM"
    if KEY in options:
        options["kafka.ssl.keystore.type"] = "PEM"
        options[KEY] = _decrypted(options[KEY], str(config.get(KEY_PASSWORD, "")))
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


def _decrypted(key: str, password: str) -> str:
    """Return a key in PKCS#8 without encryption: Java 17 decrypts none that OpenSSL 3 writes."""
    try:
        read = load_pem_private_key(key.encode(), password.encode() if "ENCRYPTED" in key else None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        line = "OUTBOX_KAFKA_CONFIG: no PEM key in ssl.key.location or ssl.key.pem"
        raise ConfigurationError(f"{line}, or another password than {KEY_PASSWORD}") from None
    return read.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _login(config: Mapping[str, Any]) -> str:
    mechanism = str(config.get("sasl.mechanism", config.get("sasl.mechanisms", "PLAIN")))
    module = SCRAM if mechanism.startswith("SCRAM") else PLAIN
    user, password = (_quoted(str(config.get(name, ""))) for name in LOGIN)
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
