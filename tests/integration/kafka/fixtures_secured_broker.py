"""A broker with TLS, logins and the permissions of docs/security.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic

from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import single_node
from devservers.loopback import LOOPBACK, free_ports
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic
from outbox.kafka.topic_view import KafkaTopicView
from outbox.postgres.sessions.connections import Connection
from tests.fixtures_certificates import CertificateAuthority
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import RelayWorld

PAGE = (PROJECT / "docs" / "security.md").read_text("utf-8")
TOPIC = "invoices.issued"
PASSWORD = "a long password"
PRINCIPALS = ("outbox-checker", "outbox-api", "outbox-reconcile", "stranger")


def page_rules() -> list[AclBinding]:
    """Return the permissions that the page's table gives to our programs."""
    row = re.compile(
        r"^\| `(outbox-\w+)` \| (TOPIC|CLUSTER|TRANSACTIONAL_ID) `([\w.-]+)(\*?)`"
        r" \| ([A-Z_, ]+) \|",
        re.MULTILINE,
    )
    return [
        AclBinding(
            # librdkafka has no word for the cluster but BROKER, and none for "transactional id".
            ResourceType.BROKER if kind == "CLUSTER" else ResourceType[kind],
            TOPIC if name == "your-topic" else name,
            ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL,
            f"User:{principal}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for principal, kind, name, prefix, operations in row.findall(PAGE)
        for operation in operations.split(", ")
    ]


def page_config() -> dict[str, Any]:
    """Return the example of OUTBOX_KAFKA_CONFIG."""
    (text,) = re.findall(r"OUTBOX_KAFKA_CONFIG='(\{.*?\})'", PAGE, re.DOTALL)
    config: dict[str, Any] = json.loads(text)
    return config


@dataclass
class SecuredBroker:
    """A broker with an encrypted listener where clients log in, and a plain one for the test."""

    broker: EmbeddedKafka
    servers: str
    certificate: Path

    @property
    def plain(self) -> str:
        """The address at which the test itself may do everything."""
        return self.broker.bootstrap_servers

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient({"bootstrap.servers": self.plain, "log_level": 0})

    def config(self, principal: str) -> dict[str, Any]:
        """Return the page's example for a principal of this broker."""
        own = {
            "sasl.username": principal,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificate),
        }
        return {**page_config(), **own}

    def environment(self, principal: str) -> dict[str, str]:
        """Return the settings of a program that logs in as a principal."""
        return {
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "OUTBOX_KAFKA_CONFIG": json.dumps(self.config(principal)),
        }

    def allow(self) -> None:
        """Create the principals, and give them what the page says."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        users: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(each, info, PASSWORD.encode()) for each in PRINCIPALS
        ]
        for done in self.admin.alter_user_scram_credentials(users).values():
            done.result(timeout=60)
        for done in self.admin.create_acls(page_rules()).values():
            done.result(timeout=60)
        view = KafkaTopicView(self.servers, self.config("outbox-checker"))
        wait_for(lambda: view.read([TOPIC])[TOPIC].max_message_bytes is not None)

    @contextmanager
    def without(self, rule: AclBinding) -> Iterator[None]:
        """Take one permission away for the block."""
        fields = (rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host)
        asked = AclBindingFilter(*fields, rule.operation, rule.permission_type)
        [deleted] = self.admin.delete_acls([asked]).values()
        assert len(deleted.result(timeout=60)) == 1
        try:
            yield
        finally:
            for done in self.admin.create_acls([rule]).values():
                done.result(timeout=60)


class SecuredWorld(RelayWorld):
    """A world whose checker connects as the page says."""

    config: dict[str, Any]

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"OUTBOX_KAFKA_CONFIG": json.dumps(self.config)}


def secure_listener(
    ports: Sequence[int], protocol: str, signed: tuple[Path, Path], folder: Path
) -> dict[str, str]:
    """Return a broker's settings for a TLS listener beside the plain one and the controller's."""
    plain, controller, secure = ports
    certificate, key = signed
    store = folder / "broker.pem"
    store.write_text(key.read_text() + certificate.read_text())
    listeners = f"BROKER://{LOOPBACK}:{plain},SECURE://{LOOPBACK}:{secure}"
    protocols = f"BROKER:PLAINTEXT,SECURE:{protocol},CONTROLLER:PLAINTEXT"
    return {
        "listeners": f"{listeners},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": protocols,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
    }


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    """Start the broker in a folder, with one topic and that of the manifests.

    On an aged installation their logs start above 0.
    """
    authority = CertificateAuthority(folder / "authority")
    plain, controller, secure = ports = free_ports(3)
    settings = {
        **secure_listener(ports, "SASL_SSL", authority.sign(LOOPBACK), folder),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = EmbeddedKafka(
        folder / "kafka", port=plain, cluster=single_node(controller), settings=settings
    )
    broker.start()
    try:
        made = SecuredBroker(broker, f"{LOOPBACK}:{secure}", authority.certificate)
        ensure_progress_topic(made.plain, replication=1)
        made.admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(timeout=60)
        made.allow()
        yield made
    finally:
        broker.kill()
        broker.erase()


def secured_world(
    secured: SecuredBroker, database_url: str, connection: Connection
) -> SecuredWorld:
    """Return a world of the broker's topic whose checker has the page's principal."""
    world = SecuredWorld(database_url, secured.servers, TOPIC, PROGRESS_TOPIC, connection)
    world.config = secured.config("outbox-checker")
    return world
