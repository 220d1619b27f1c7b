"""The permissions and the connection settings of docs/security.md, on a broker that needs both."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
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
from structlog.testing import capture_logs

from benchmarks.load.committed import commit_directly
from devservers.kafka import EmbeddedKafka
from devservers.ports import LOOPBACK, free_ports
from outbox.kafka.health.kafka_checks import kafka_checks
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic, progress_topic_facts
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.kafka.topic_view import KafkaTopicView
from outbox.postgres.sessions.connections import connect
from outbox.settings.environment import load_settings
from tests.fixtures_certificates import CertificateAuthority
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

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
        if principal in PRINCIPALS
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

    def config(self, principal: str) -> dict[str, Any]:
        """Return the page's example for a principal of this broker."""
        own = {
            "sasl.username": principal,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificate),
        }
        return {**page_config(), **own}

    def allow(self) -> None:
        """Create the principals, and give them what the page says."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        users: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(each, info, PASSWORD.encode()) for each in PRINCIPALS
        ]
        for done in admin.alter_user_scram_credentials(users).values():
            done.result(timeout=60)
        for done in admin.create_acls(page_rules()).values():
            done.result(timeout=60)
        view = KafkaTopicView(self.servers, self.config("outbox-checker"))
        wait_for(lambda: view.read([TOPIC])[TOPIC].max_content_bytes is not None)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured")
    authority = CertificateAuthority(folder / "authority")
    certificate, key = authority.sign(LOOPBACK)
    store = folder / "broker.pem"
    store.write_text(key.read_text() + certificate.read_text())
    plain, controller, secure = free_ports(3)
    listeners = f"BROKER://{LOOPBACK}:{plain},SECURE://{LOOPBACK}:{secure}"
    settings = {
        "listeners": f"{listeners},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "BROKER:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = EmbeddedKafka(
        folder / "kafka", port=plain, controller_port=controller, settings=settings
    )
    broker.start()
    made = SecuredBroker(broker, f"{LOOPBACK}:{secure}", authority.certificate)
    ensure_progress_topic(broker.bootstrap_servers, replication=1)
    make_topic(broker.bootstrap_servers, TOPIC)
    made.allow()
    yield made
    broker.kill()
    broker.erase()


def make_topic(servers: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=60)


class SecuredWorld(RelayWorld):
    """A world whose checker connects as the page says."""

    config: dict[str, Any]

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"OUTBOX_KAFKA_CONFIG": json.dumps(self.config)}


def test_the_checkers_principal_publishes(database_url: str, secured: SecuredBroker) -> None:
    config = secured.config("outbox-checker")
    facts = progress_topic_facts(secured.servers, config)
    assert (facts.partitions, facts.settings["cleanup.policy"]) == (16, "delete")
    with connect(database_url, "test") as connection:
        world = SecuredWorld(database_url, secured.servers, TOPIC, PROGRESS_TOPIC, connection)
        world.config = config
        world.commit_values(b"one", b"two")
        with capture_logs() as logs:
            relay = world.relay()
            drain(relay)
            relay.close()
        assert not [each for each in logs if each["log_level"] in ("warning", "error")]
        published = "SELECT batch_no FROM outbox.progress WHERE name = 'relay:3'"
        assert world.one(published) == 1
    seen = KafkaTopicView(secured.servers, config).read([TOPIC])[TOPIC]
    assert seen.may_write is True
    assert seen.max_content_bytes is not None


def test_the_apis_principal_sees_topics_and_writes_none(secured: SecuredBroker) -> None:
    with closing(KafkaTopicCatalogue(secured.servers, secured.config("outbox-api"))) as catalogue:
        assert catalogue.partitions() == {TOPIC: 1, PROGRESS_TOPIC: 16}
    assert refusal(secured, "outbox-api", TOPIC) == "TOPIC_AUTHORIZATION_FAILED"


def test_the_audits_principal_reads_both_topics_and_writes_none(secured: SecuredBroker) -> None:
    reader = KafkaLogReader(secured.servers, secured.config("outbox-reconcile"))
    topics = [PROGRESS_TOPIC, TOPIC]
    parts = reader.partitions(topics)
    assert len(parts) == 17
    facts = reader.describe(topics)
    assert set(facts) == set(topics)
    assert not [each for each in facts.values() if isinstance(each, str)]
    assert set(reader.next_records(dict.fromkeys(parts, 0))) == set(parts)
    for topic in topics:
        assert refusal(secured, "outbox-reconcile", topic) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("topic", [PROGRESS_TOPIC, TOPIC])
def test_a_stranger_writes_neither_manifests_nor_records(
    secured: SecuredBroker, topic: str
) -> None:
    assert refusal(secured, "stranger", topic) in (
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PART",
    )


def test_a_stranger_cannot_fence_a_relay(secured: SecuredBroker) -> None:
    config = {**secured.config("stranger"), "transactional.id": "outbox.any.3"}
    producer = Producer({"bootstrap.servers": secured.servers, "log_level": 0, **config})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        producer.init_transactions(60)


def named(rule: AclBinding) -> str:
    """Return a rule in words."""
    operation = AclOperation(rule.operation).name
    return f"{rule.principal.removeprefix('User:')}: {rule.name} {operation}"


@contextmanager
def without(secured: SecuredBroker, rule: AclBinding) -> Iterator[None]:
    """Take one permission away for the block."""
    admin = AdminClient({"bootstrap.servers": secured.broker.bootstrap_servers, "log_level": 0})
    fields = (rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host)
    asked = AclBindingFilter(*fields, rule.operation, rule.permission_type)
    [deleted] = admin.delete_acls([asked]).values()
    assert len(deleted.result(timeout=60)) == 1
    try:
        yield
    finally:
        for done in admin.create_acls([rule]).values():
            done.result(timeout=60)


def said_by_doctor(secured: SecuredBroker) -> str:
    """Return what the doctor finds with the checker's permissions."""
    given = {
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": secured.servers,
        "OUTBOX_KAFKA_CONFIG": json.dumps(secured.config("outbox-checker")),
    }
    return "; ".join(each.detail for each in kafka_checks(load_settings(given), [TOPIC]))


def said_by_relay(secured: SecuredBroker, database_url: str, shard: int) -> str:
    """Return what a relay logs that has to publish a message."""
    with connect(database_url, "test") as connection, capture_logs() as logs:
        world = SecuredWorld(database_url, secured.servers, TOPIC, PROGRESS_TOPIC, connection)
        world.config = secured.config("outbox-checker")
        commit_directly(connection, [world.message(b"one")], shard=shard)
        with closing(world.builder().open(shard)) as relay:
            rounds = [relay.run_once() for _ in range(12)]
    published = sum(each.published for each in rounds)
    return f"published {published}; {logs}"


CHECKER = tuple(rule for rule in page_rules() if rule.principal == "User:outbox-checker")
SAID_BY_RELAY = {
    "outbox-checker: outbox. WRITE": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    f"outbox-checker: {TOPIC} WRITE": "TOPIC_AUTHORIZATION_FAILED",
}
SAID_BY_DOCTOR = {
    "outbox-checker: outbox.progress DESCRIBE_CONFIGS": (
        "this principal needs DESCRIBE_CONFIGS on the topic outbox.progress"
    ),
    "outbox-checker: kafka-cluster DESCRIBE_CONFIGS": (
        "this principal needs DESCRIBE_CONFIGS on the cluster"
    ),
}


@pytest.mark.parametrize(
    "rule", [each for each in CHECKER if named(each) in SAID_BY_RELAY | SAID_BY_DOCTOR], ids=named
)
def test_the_program_that_misses_a_permission_says_so(
    database_url: str, secured: SecuredBroker, rule: AclBinding
) -> None:
    name = named(rule)
    with without(secured, rule):
        if name in SAID_BY_RELAY:
            shard = 4 + CHECKER.index(rule)
            assert SAID_BY_RELAY[name] in said_by_relay(secured, database_url, shard)
        else:
            assert SAID_BY_DOCTOR[name] in said_by_doctor(secured)


def test_every_permission_whose_loss_is_tested_is_on_the_page() -> None:
    assert {*SAID_BY_RELAY, *SAID_BY_DOCTOR} <= {named(rule) for rule in CHECKER}


def refusal(secured: SecuredBroker, principal: str, topic: str) -> str | None:
    """Return the name of the error that a principal's record gets; None if it was taken."""
    config = {**secured.config(principal), "message.timeout.ms": 20_000}
    producer = Producer({"bootstrap.servers": secured.servers, "log_level": 0, **config})
    told: list[str | None] = []
    heard = threading.Event()

    def report(error: Any, _: Any) -> None:
        told.append(error and error.name())
        heard.set()

    producer.produce(topic, b"forged", on_delivery=report)
    producer.flush(60)
    assert heard.is_set()
    return told[0]
