"""`outbox doctor` against real brokers: releases, replicas, open transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from devservers.artifacts import kafka_version
from devservers.kafka import EmbeddedKafka
from devservers.loopback import LOOPBACK, free_ports
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.e2e.fixtures_command import Ended, outbox
from tests.e2e.fixtures_command_here import Command
from tests.fixtures_kafka import make_topic
from tests.fixtures_separate_broker import separate_broker
from tests.integration.kafka.health.fixtures_open_transaction import open_transaction

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

SKIPPING = "4.3.1"
"""A release that skips the markers of a partition without a leader."""
SKIPS_MARKERS = [4, 3]
"""From this release on a single broker is one to avoid."""
Verdicts = dict[str, tuple[str, str]]
Doctor = Callable[[str, str], Verdicts]
Run = Callable[..., Ended]


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
    if not kafka_version(SKIPPING):
        pytest.skip(f"Kafka {SKIPPING} is not fetched: make kafka KAFKA={SKIPPING}")
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
