"""One OUTBOX_KAFKA_CONFIG for librdkafka and for Java, on a broker that wants a certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from pyspark.sql import SparkSession

from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import single_node
from devservers.loopback import LOOPBACK, free_ports
from outbox.kafka.health.kafka_checks import kafka_checks
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.settings.environment import load_settings
from spark.jvm.kafka_options import kafka_options
from tests.fixtures_certificates import CertificateAuthority
from tests.integration.kafka.fixtures_secured_broker import secure_listener
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = [*ON_SPARK, pytest.mark.kafka, pytest.mark.deep]

ANOTHER_HOST = "192.0.2.1"
KEY_PASSWORD = "the key's password"


def test_every_client_reaches_a_broker_with_a_certificate_for_another_host(
    session: SparkSession, tmp_path: Path
) -> None:
    authority = CertificateAuthority(tmp_path / "authority")
    certificate, key = signed = authority.sign(ANOTHER_HOST)
    plain, controller, secure = ports = free_ports(3)
    settings = {
        **secure_listener(ports, "SSL", signed, tmp_path),
        "ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    broker = EmbeddedKafka(
        tmp_path / "kafka", port=plain, cluster=single_node(controller), settings=settings
    )
    broker.start()
    try:
        ensure_progress_topic(broker.bootstrap_servers, replication=1)
        unchecked = {
            "security.protocol": "SSL",
            "ssl.endpoint.identification.algorithm": "none",
        }
        by_file = {
            "ssl.ca.location": str(authority.certificate),
            "ssl.certificate.location": str(certificate),
            "ssl.key.location": str(key),
        }
        in_place = {
            "ssl.ca.pem": authority.certificate.read_text(),
            "ssl.certificate.pem": certificate.read_text(),
            "ssl.key.pem": key.read_text(),
        }
        encrypted = {
            **by_file,
            "ssl.key.location": str(encrypted_copy(key)),
            "ssl.key.password": KEY_PASSWORD,
        }
        for written, pem in enumerate((by_file, in_place, encrypted), 1):
            reaches(session, f"{LOOPBACK}:{secure}", {**unchecked, **pem}, written)
    finally:
        broker.kill()
        broker.erase()


def encrypted_copy(key: Path) -> Path:
    """Return the file of a key again, encrypted as `openssl pkcs8 -topk8` does."""
    private = load_pem_private_key(key.read_bytes(), None)
    encryption = BestAvailableEncryption(KEY_PASSWORD.encode())
    copy = key.with_suffix(".encrypted")
    copy.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return copy


def reaches(session: SparkSession, servers: str, config: dict[str, Any], written: int) -> None:
    """Write a record as a relay does, look as the API and the doctor do, read as an audit does."""
    producer = Producer({**config, "bootstrap.servers": servers})
    producer.produce(PROGRESS_TOPIC, b"manifest", partition=0)
    assert producer.flush(60) == 0
    assert PROGRESS_TOPIC in KafkaTopicCatalogue(servers, config).partitions()
    asked = {
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": servers,
        "OUTBOX_KAFKA_CONFIG": json.dumps(config),
    }
    found = {each.check: each.verdict for each in kafka_checks(load_settings(asked), [])}
    assert found["kafka"] == "ok"
    options = kafka_options(servers, config)
    read = session.read.format("kafka").options(**options).option("subscribe", PROGRESS_TOPIC)
    assert read.load().count() == written
