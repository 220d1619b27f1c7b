"""Manifests are read back to the end; aborted records and markers have offsets, too."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Producer

from devservers.kafka import EmbeddedKafka
from outbox.errors import KafkaUnavailable
from outbox.kafka import progress_log
from outbox.kafka.client_config import admin_client, consumer_config, producer_config
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.messages.manifest import START, Kind, Manifest, Position, encode
from tests.fixtures_kafka import make_topic
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for

pytestmark = pytest.mark.kafka

SECONDS = 60.0
MARKER = 1
"""The number of offsets that the end of a transaction takes."""


class Shard:
    """The only partition of a separate topic, its writer and its reader."""

    def __init__(self, servers: str) -> None:
        self.topic = make_topic(servers, partitions=1)
        self._servers = servers
        self._admin = admin_client(servers, {})
        self.producer = Producer(producer_config(servers, {}, self.topic))
        self.producer.init_transactions(SECONDS)

    def begin(self, batch_no: int) -> None:
        """Write a manifest in a transaction that stays open."""
        self.producer.begin_transaction()
        self.producer.produce(self.topic, encode(manifest(batch_no)), partition=0)
        self.producer.flush(SECONDS)

    def commit(self, batch_no: int) -> None:
        """Write a manifest that counts."""
        self.begin(batch_no)
        self.producer.commit_transaction(SECONDS)

    def abort(self, batch_no: int) -> None:
        """Write a manifest that does not count."""
        self.begin(batch_no)
        self.producer.abort_transaction(SECONDS)

    def ends_at(self, end: int) -> bool:
        """Return whether the log has so many offsets; markers come a moment after a commit."""
        return self._log().bounds() == (0, end)

    def read(self, end: int, wait_seconds: float = SECONDS) -> tuple[list[int], bool]:
        """Return the numbers of the manifests in the first offsets, and whether it got so far."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(progress_log, "WAIT_SECONDS", wait_seconds)
            found, reached = self._log().read(0, end)
        return [each.manifest.batch_no for each in found if each.manifest], reached

    def _log(self) -> KafkaProgressLog:
        return KafkaProgressLog(self._admin, consumer_config(self._servers, {}), 0, self.topic)


@pytest.fixture
def shard(kafka_broker: EmbeddedKafka) -> Shard:
    """Return an empty shard."""
    return Shard(kafka_broker.bootstrap_servers)


def test_a_tail_of_aborted_manifests_hides_nothing_before_it(shard: Shard) -> None:
    shard.commit(1)
    shard.commit(2)
    for _ in range(3):
        shard.abort(3)
    wait_for(lambda: shard.ends_at(5 * (1 + MARKER)))
    assert shard.read(10) == ([1, 2], True)


def test_a_manifest_after_the_end_is_not_read_in_place_of_aborted_ones(shard: Shard) -> None:
    """It is another owner's, who has fenced the one that reads."""
    shard.abort(1)
    wait_for(lambda: shard.ends_at(1 + MARKER))
    shard.commit(1)
    assert shard.read(1 + MARKER) == ([], True)


def test_the_end_counts_what_is_not_yet_decided_and_is_not_reached_before_it_is(
    shard: Shard,
) -> None:
    shard.commit(1)
    shard.begin(2)
    wait_for(lambda: shard.ends_at(3))
    assert shard.read(3, wait_seconds=2.0)[1] is False
    shard.producer.commit_transaction(SECONDS)
    assert shard.read(3) == ([1, 2], True)


@pytest.mark.deep
def test_a_broker_that_is_away_is_no_transaction_in_the_way(tmp_path: Path) -> None:
    """Silence of Kafka is an outage, which ends by itself; only a broker that answers may halt."""
    with separate_broker(tmp_path) as broker:
        shard = Shard(broker.bootstrap_servers)
        shard.commit(1)
        broker.kill()
        with pytest.raises(KafkaUnavailable):
            shard.read(2, wait_seconds=2.0)


def manifest(batch_no: int) -> Manifest:
    return Manifest(
        installation=UUID(int=1),
        shard=0,
        gen=1,
        kind=Kind.BATCH,
        batch_no=batch_no,
        prev_crc=0,
        after=START,
        to=Position(batch_no, 1),
        entries=(),
    )
