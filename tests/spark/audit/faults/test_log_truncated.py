"""What a real broker has lost or compacted: LOST where its log was truncated, else UNVERIFIABLE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.message_id import HalfId, parse_message_id
from outbox.messages.record import MESSAGE_ID
from outbox.reconciliation.log import LogEnd, Partition
from spark.audit.audit import Audit
from spark.findings.finding_class import Cause
from spark.findings.verdict import Verdict
from spark.report.report import Report
from spark.report.store_run import store_run
from tests.fixtures_databases import drop_database, make_database
from tests.fixtures_kafka import make_topic, read_committed
from tests.fixtures_waiting import wait_for
from tests.spark.audit.faults.fixtures_truncated_log import cut_tail
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options, make_parts

pytestmark = [*REAL_STORES, pytest.mark.deep]

CUT, REGROWN, COMPACTED = "truncated-cut", "truncated-regrown", "truncated-compacted"
EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "1",
}
"""A topic whose older records are removed at the cleaner's next pass, and tombstones soon after."""
ClassAt = tuple[Cause, str | None, HalfId | None]
"""Of a finding its cause, topic and message."""
EACH = 12
LEFT = 2
"""Records of the compacted topic, one of each key that is left."""
TAIL = 2
"""So many transactions are cut off the first partition of a log."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """Two runs, before and after the broker had lost what it had acknowledged."""

    writer: OutboxWriter
    facts: KafkaLogReader
    superseded: tuple[HalfMessage, ...]
    gone: dict[str, frozenset[HalfId]]
    """By topic, the messages whose records were cut off."""
    ends: dict[str, tuple[int, int]]
    """By topic, where the first partition ended before and where it was cut off."""
    first: Report
    second: Report

    @property
    def compacted(self) -> Counter[ClassAt]:
        """The expected findings about the messages that the cleaner removed."""
        return Counter(
            (Cause.UNVERIFIABLE_COMPACTED, COMPACTED, h.half_id) for h in self.superseded
        )


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of its own, that may be killed and whose cleaner does not rest."""
    quick = {"log.cleaner.backoff.ms": "50", "log.initial.task.delay.ms": "0"}
    made = EmbeddedKafka(tmp_path_factory.mktemp("kafka"), settings=quick)
    made.start()
    yield made
    made.kill()
    made.erase()


@pytest.fixture(scope="module")
def story(
    session: SparkSession,
    postgres_server: EmbeddedPostgres,
    template_database: str,
    broker: EmbeddedKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    """Run, truncate both logs, let one log grow again, and run once more."""
    url = make_database(postgres_server.database_url, template_database)
    writer = OutboxWriter(url, broker.bootstrap_servers, "truncated")
    folder, facts = tmp_path_factory.mktemp("truncated"), KafkaLogReader(broker.bootstrap_servers)
    writer.create_topics(CUT, REGROWN)
    superseded = _compacted_messages(writer)
    _commit_some(writer, CUT, REGROWN)
    first = _run(session, writer, folder)
    ends, gone = _lose_tails(writer, broker, facts)
    _commit_some(writer, REGROWN)
    second = _run(session, writer, folder)
    yield Story(
        writer=writer,
        facts=facts,
        superseded=superseded,
        gone=gone,
        ends=ends,
        first=first,
        second=second,
    )
    drop_database(postgres_server.database_url, url)


def _compacted_messages(writer: OutboxWriter) -> tuple[HalfMessage, ...]:
    """Commit messages of three keys until the cleaner has all but two; return what is gone.

    Of one key nothing is left: its tombstone is gone like the values before it. The cleaner only
    works after new records, so there are some of another key.
    """
    topic = make_topic(writer.bootstrap_servers, partitions=1, name=COMPACTED, config=EAGER)
    writer.topics.append(topic)
    gone = [_commit_one(writer, topic, b"gone"), _commit_one(writer, topic, b"gone")]
    gone.append(_commit_one(writer, topic, b"gone", value=None))
    superseded = [_commit_one(writer, topic, b"k"), _commit_one(writer, topic, b"k")]
    _commit_one(writer, topic, b"k")
    others: list[HalfMessage] = []

    def is_clean() -> bool:
        others.append(_commit_one(writer, topic, b"other"))
        for _ in range(10):
            if len(read_committed(writer.bootstrap_servers, topic, 1)) == LEFT:
                return True
        return False

    wait_for(is_clean)
    return (*gone, *superseded, *others[:-1])


def _commit_one(writer: OutboxWriter, topic: str, key: bytes, **fields: Any) -> HalfMessage:
    (half,) = writer.prepare(topic, 1, key=key, **fields)
    writer.end([half], Resolution.COMMIT)
    writer.publish()
    return half


def _commit_some(writer: OutboxWriter, *topics: str) -> None:
    for topic in topics:
        writer.end(writer.prepare(topic, EACH), Resolution.COMMIT)
    writer.publish()


def _run(session: SparkSession, writer: OutboxWriter, folder: Path) -> Report:
    parts = make_parts(session, writer)
    report = Audit(parts, make_options(writer, folder)).run()
    store_run(report, parts.run_store, samples=5)
    return report


def _lose_tails(
    writer: OutboxWriter, broker: EmbeddedKafka, facts: KafkaLogReader
) -> tuple[dict[str, tuple[int, int]], dict[str, frozenset[HalfId]]]:
    """Kill the broker, cut both logs and start it again; return the ends and the lost messages."""
    there = {topic: _by_offset(writer, topic) for topic in (CUT, REGROWN)}
    before = _ends(facts)
    broker.kill()
    after = {topic: cut_tail(broker.home / "data", topic, 0, TAIL) for topic in there}
    broker.start()
    del writer._transactional_producer  # Its transactions are the broker's past.
    gone = {
        topic: frozenset(half_id for offset, half_id in by_offset if offset >= after[topic])
        for topic, by_offset in there.items()
    }
    return {topic: (before[topic], end) for topic, end in after.items()}, gone


def _ends(facts: KafkaLogReader) -> dict[str, int]:
    firsts = [Partition(topic, 0) for topic in (CUT, REGROWN)]
    offsets = facts.offsets(firsts, LogEnd.LAST_STABLE).offsets
    return {partition.topic: end for partition, end in offsets.items()}


def _by_offset(writer: OutboxWriter, topic: str) -> list[tuple[int, HalfId]]:
    """Return the first partition's records: their offsets and of which messages they are."""
    found: list[tuple[int, HalfId]] = []
    for message in read_committed(writer.bootstrap_servers, topic, EACH):
        headers = dict(message.headers() or ())
        if message.partition() == 0:
            name = headers[MESSAGE_ID]
            assert isinstance(name, bytes)
            found.append((message.offset() or 0, parse_message_id(name.decode())[0]))
    return found


def classes_of(report: Report) -> Counter[ClassAt]:
    """Return what a run has found."""
    return Counter((each.cause, each.topic, each.half_id) for each in report.findings)


def test_a_record_that_compaction_took_for_a_later_one_of_its_key_is_not_lost(
    story: Story,
) -> None:
    assert classes_of(story.first) == story.compacted
    assert story.first.verdict is Verdict.CLEAN
    assert story.first.counts.unverifiable == len(story.superseded)


def test_each_message_of_a_truncated_log_is_lost_even_if_the_log_grew_again(
    story: Story,
) -> None:
    lost = Counter(
        (Cause.LOST_PUBLISHED, topic, half_id)
        for topic, half_ids in story.gone.items()
        for half_id in half_ids
    )
    cut_off = Counter((Cause.LOG_CHANGED_TRUNCATED, topic, None) for topic in story.gone)
    assert lost.total() >= 2 * TAIL
    assert classes_of(story.second) == lost + cut_off + story.compacted
    assert story.second.verdict is Verdict.FINDINGS


def test_after_a_restart_the_present_leader_is_asked(story: Story) -> None:
    ends = _ends(story.facts)
    assert ends[CUT] == story.ends[CUT][1]
    assert ends[REGROWN] > story.ends[REGROWN][0]
