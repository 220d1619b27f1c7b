"""`outbox doctor` against real brokers: releases, replicas, open transactions, share groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from devservers.artifacts import kafka_version
from devservers.kafka import EmbeddedKafka
from devservers.loopback import LOOPBACK, free_ports
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.e2e.fixtures_command import Ended, outbox
from tests.e2e.fixtures_command_here import Command
from tests.fixtures_kafka import make_topic
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for
from tests.integration.kafka.health.fixtures_open_transaction import open_transaction

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

SKIPPING = "4.3.1"
"""A release that skips the markers of a partition without a leader."""
SHARE_GROUPS = [4, 2]
"""The first release whose brokers offer share groups by themselves."""
SKIPS_MARKERS = [4, 3]
"""From this release on a single broker is one to avoid."""
HOUR = 3600.0
SECONDS = 60.0
Verdicts = dict[str, tuple[str, str]]
Doctor = Callable[[str, str], Verdicts]
Run = Callable[..., Ended]


def needs_skipping_release() -> None:
    """Skip where the release is not fetched."""
    if not kafka_version(SKIPPING):
        pytest.skip(f"Kafka {SKIPPING} is not fetched: make kafka KAFKA={SKIPPING}")


def needs_share_groups(release: str) -> None:
    """Skip where the broker's release has them switched off."""
    if release and [int(part) for part in release.split(".")] < SHARE_GROUPS:
        pytest.skip(f"Kafka {release} has no share groups: they begin with 4.2")


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Return the command in this process, as a function of the stores' addresses."""
    return partial(verdicts, Command(capsys))


def verdicts(command: Run, database_url: str, servers: str) -> Verdicts:
    """Return verdict and detail of each check."""
    ended = command(
        *("-o", "json", "doctor"),
        OUTBOX_DATABASE_URL=database_url,
        OUTBOX_KAFKA_BOOTSTRAP_SERVERS=servers,
        OUTBOX_API_URL=f"http://{LOOPBACK}:{free_ports(1)[0]}",
    )
    return {each["check"]: (each["verdict"], each["detail"]) for each in ended.json()}


@pytest.fixture
def servers(kafka_broker: EmbeddedKafka) -> str:
    ensure_progress_topic(kafka_broker.bootstrap_servers)
    return kafka_broker.bootstrap_servers


def data_topic(database_url: str, servers: str, **config: str) -> str:
    """Create a topic that had a message."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    topic = make_topic(servers, partitions=1, config=settings)
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO outbox.topic (name) VALUES (%s)", [topic])
    return topic


@pytest.fixture
def skipping_broker(tmp_path: Path) -> Iterator[str]:
    """One broker of the release with the defect."""
    needs_skipping_release()
    with separate_broker(tmp_path, progress_topic=True, release=SKIPPING) as broker:
        yield broker.bootstrap_servers


def test_one_broker_of_a_release_that_skips_markers_fails_and_its_topics_are_named(
    doctor: Doctor, database_url: str, skipping_broker: str
) -> None:
    topic = data_topic(database_url, skipping_broker)
    verdict, detail = doctor(database_url, skipping_broker)["kafka release"]
    assert verdict == "failed"
    assert f"{topic} (replication 1, min.insync.replicas 1)" in detail
    assert "outbox.progress" in detail


def test_the_usual_release_is_none_to_avoid(
    database_url: str, servers: str, request: pytest.FixtureRequest
) -> None:
    release = request.config.getoption("--kafka-release")
    avoided = bool(release) and [int(part) for part in release.split(".")] >= SKIPS_MARKERS
    verdict = "failed" if avoided else "ok"
    assert verdicts(outbox, database_url, servers)["kafka release"][0] == verdict


def test_a_data_topic_with_unclean_leader_election_fails_and_is_named(
    doctor: Doctor, database_url: str, servers: str
) -> None:
    data_topic(database_url, servers, min_insync_replicas="2")
    found = doctor(database_url, servers)
    assert found["unclean leader election"][0] == found["topics in sync"][0] == "ok"
    risky = data_topic(database_url, servers, unclean_leader_election_enable="true")
    verdict, detail = doctor(database_url, servers)["unclean leader election"]
    assert (verdict, risky in detail) == ("failed", True)


def test_a_transaction_of_a_relay_hangs_when_it_is_older_than_kafka_lets_it_become(
    doctor: Doctor, database_url: str, servers: str
) -> None:
    topic = data_topic(database_url, servers)
    with open_transaction(servers, topic, ours=True):
        found = doctor(database_url, servers)["hanging transactions"]
        assert (found[0], f"{topic}/0 from offset" in found[1]) == ("failed", True)
    assert doctor(database_url, servers)["hanging transactions"][0] == "ok"


def test_a_transaction_of_a_stranger_that_copies_old_records_does_not_hang(
    doctor: Doctor, database_url: str, servers: str
) -> None:
    topic = data_topic(database_url, servers)
    with copies_old_records(servers, topic):
        assert doctor(database_url, servers)["hanging transactions"][0] == "ok"


@pytest.mark.parametrize(
    ("stamped", "verdict"), [("CreateTime", "warning"), ("LogAppendTime", "ok")]
)
def test_only_the_time_of_a_broker_proves_the_age_of_a_strangers_transaction(
    doctor: Doctor, database_url: str, servers: str, stamped: str, verdict: str
) -> None:
    topic = data_topic(database_url, servers, message_timestamp_type=stamped)
    with open_transaction(servers, topic):
        found = doctor(database_url, servers)["hanging transactions"]
    assert found[0] == verdict, found
    assert (f"{topic}/0 from offset" in found[1]) == (verdict != "ok")


@contextmanager
def copies_old_records(servers: str, topic: str) -> Iterator[None]:
    """Write records of an hour ago meanwhile, in short transactions, one after the other."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"copy-{uuid4()}"})
    producer.init_transactions(SECONDS)
    begun, stop = Event(), Event()

    def copy() -> None:
        while not stop.is_set():
            producer.begin_transaction()
            producer.produce(topic, b"v", timestamp=int((time.time() - HOUR) * 1000))
            producer.flush(SECONDS)
            begun.set()
            stop.wait(2.0)
            producer.commit_transaction(SECONDS)

    with ThreadPoolExecutor() as threads:
        copying = threads.submit(copy)
        try:
            assert begun.wait(SECONDS)
            yield
        finally:
            stop.set()
            copying.result()


def set_isolation(servers: str, group: str, isolation: str) -> None:
    """Set what a share group reads."""
    entry = ConfigEntry(
        "share.isolation.level", isolation, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(timeout=SECONDS)


def test_a_share_group_is_a_warning_until_it_reads_committed_records_only(
    doctor: Doctor, database_url: str, servers: str, request: pytest.FixtureRequest
) -> None:
    needs_share_groups(request.config.getoption("--kafka-release"))
    topic, group = data_topic(database_url, servers), f"share-{uuid4()}"
    config = {"bootstrap.servers": servers, "group.id": group, "log_level": 0}
    with closing(ShareConsumer(config)) as consumer:
        consumer.subscribe([topic])

        def found() -> tuple[str, str]:
            consumer.poll(timeout=0.5)
            return doctor(database_url, servers)["share groups"]

        wait_for(lambda: group in found()[1], seconds=SECONDS)
        assert found()[0] == "warning"
        set_isolation(servers, group, "read_committed")
        assert group not in found()[1]
