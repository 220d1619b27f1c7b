"""KAFKA-20734: the relay does not start on a release that skips markers, and needs no guard on 4.2.

The second of two nodes dies with all replicas of the data topic, between flush and commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from checker.relay import executor
from devservers.artifacts import kafka_version
from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from outbox.kafka.progress_topic import ensure_progress_topic
from tests.fixtures_kafka import make_topic
from tests.fixtures_separate_broker import running_nodes
from tests.fixtures_waiting import wait_for
from tests.integration.checker.fixtures_checker_process import start_checker
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, first_batch
from tests.integration.checker.relay.test_preflight import assert_refused

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

SKIPPING = "4.3.1"
STATE = "__transaction_state"
READY_SECONDS = 120.0
SMALL_STATE = {"transaction.state.log.min.isr": "1"}


@contextmanager
def two_nodes(folder: Path, release: str = "") -> Iterator[Sequence[EmbeddedKafka]]:
    """Run two brokers for the block; the first is the controller and coordinates transactions."""
    cluster = new_cluster(2, controllers=1)
    nodes = [
        EmbeddedKafka(
            folder / f"kafka-{node}",
            cluster=cluster,
            node_id=node,
            release=release,
            settings=SMALL_STATE,
        )
        for node in (1, 2)
    ]
    with running_nodes(nodes, READY_SECONDS):
        yield nodes


@pytest.fixture
def skipping(tmp_path: Path) -> Iterator[str]:
    """Two nodes of a release with the defect, where it is fetched."""
    if not kafka_version(SKIPPING):
        pytest.skip(f"Kafka {SKIPPING} is not fetched: make kafka KAFKA={SKIPPING}")
    with two_nodes(tmp_path, SKIPPING) as nodes:
        servers = nodes[0].bootstrap_servers
        ensure_progress_topic(servers)
        yield servers


async def test_two_nodes_that_skip_markers_are_refused_unless_an_operator_allows_it(
    database_url: str, skipping: str
) -> None:
    topic = make_topic(skipping, partitions=1)
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO outbox.topic (name) VALUES (%s)", [topic])
    await assert_refused(database_url, skipping, "kafka release")
    allowed = await start_checker(
        "--only",
        "relay",
        database_url=database_url,
        kafka_bootstrap_servers=skipping,
        relay_allow_kafka_release="true",
    )
    assert "relay_refused" not in await allowed.says("started")
    await allowed.stop()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Sequence[EmbeddedKafka]]:
    """Two nodes of the usual release; everything but a test's topic is on the first."""
    with two_nodes(tmp_path) as nodes:
        admin = AdminClient({"bootstrap.servers": nodes[0].bootstrap_servers, "log_level": 0})
        compacted = {"cleanup.policy": "compact"}
        state = NewTopic(STATE, 4, replica_assignment=[[1]] * 4, config=compacted)
        progress = NewTopic("progress", 16, replica_assignment=[[1]] * 16)
        data = NewTopic("data", 1, replica_assignment=[[2]])
        for made in admin.create_topics([state, progress, data]).values():
            made.result(timeout=60)
        wait_for(lambda: _led(admin))
        yield nodes


def _led(admin: AdminClient) -> bool:
    known = admin.list_topics(timeout=60).topics
    names = known.keys() & {STATE, "progress", "data"}
    parts = [each for name in names for each in known[name].partitions.values()]
    return len(parts) == 4 + 16 + 1 and all(each.leader >= 0 for each in parts)


def test_a_commit_while_all_replicas_are_away_is_visible_once_on_the_usual_release(
    world: RelayWorld, mortal: Sequence[EmbeddedKafka], monkeypatch: pytest.MonkeyPatch
) -> None:
    staying, dying = mortal
    world.bootstrap_servers = staying.bootstrap_servers
    world.topic, world.progress_topic = "data", "progress"
    world.commit_values(b"one", b"two")
    seen: list[int] = []

    def reach(point: str) -> bool:
        if point == "relay.before_commit" and not seen:
            seen.append(world.log_length())
            dying.kill()
        return False

    monkeypatch.setattr(executor, "hit", reach)
    relay = world.relay()
    assert first_batch(relay) == 2
    assert seen == [2], "both records were there before the commit, and no marker"
    assert _is_stored(world)
    relay.close()
    dying.launch()
    dying.wait_ready(READY_SECONDS)
    world.commit_values(b"three")
    drain(world.relay())
    assert world.values(3) == [b"one", b"two", b"three"]


def _is_stored(world: RelayWorld) -> bool:
    """Return whether the relay has stored the batch as published."""
    return bool(world.one("SELECT count(*) FROM outbox.publication_log"))
