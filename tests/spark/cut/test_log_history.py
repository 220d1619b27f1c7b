"""A real log that changes between two runs: expired, recreated, grown; each is reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.record import Record
from spark.audit.audit import Audit
from spark.even.murmur2 import home_of
from spark.findings.finding_class import Cause
from spark.findings.topic_rules import topic_rules
from spark.findings.verdict import Verdict
from spark.report.report import Report
from spark.report.store_run import store_run
from tests.fixtures_waiting import wait_for
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options, make_parts
from tests.spark.fixtures_stored_audit import commit, hold, message_id

pytestmark = [*REAL_STORES, pytest.mark.deep]

TO_THE_END = -1


@dataclass(frozen=True)
class Story:
    """An installation whose log changed between its first and its second run."""

    writer: OutboxWriter
    lost: HalfMessage
    phantom: HalfMessage
    first: Report
    second: Report
    third: Report

    def topic(self, name: str) -> str:
        """Return a topic of this installation."""
        return f"{self.writer.prefix}-{name}"


@pytest.fixture(scope="module")
def story(
    session: SparkSession, module_writer: OutboxWriter, tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """Run, change the log, run again, and once more with the new topic accepted."""
    writer, folder = module_writer, tmp_path_factory.mktemp("history")
    topics = [f"{writer.prefix}-{name}" for name in ("expired", "recreated", "grown", "quiet")]
    writer.create_topics(*topics)
    _commit_some(writer, topics)
    lost = _lose_one(writer, topics[0])
    writer.produce(*[Record(topic, None, b"", None, ()) for topic in (topics[0], *topics[2:])])
    _misplace_one(writer, topics[2])
    first = _run(session, writer, folder)
    writer.produce(*[Record(topics[3], None, b"", None, ())] * 2)
    _commit_some(writer, topics[:1])
    writer.expire(topics[0], before=TO_THE_END)
    _recreate(writer, topics[1])
    phantom = _outgrow(writer, topics[1])
    _grow(writer, topics[2])
    second = _run(session, writer, folder)
    third = _run(session, writer, folder, accepted={topics[1]})
    return Story(writer, lost, phantom, first, second, third)


def _lose_one(writer: OutboxWriter, topic: str) -> HalfMessage:
    """Commit a message that its manifest lists and its topic lacks."""
    (lost,) = writer.prepare(topic, 1)
    writer.end([lost], Resolution.COMMIT)
    writer.publish(lambda record: ())
    return lost


def _misplace_one(writer: OutboxWriter, topic: str) -> None:
    """Publish the last of three records of a key elsewhere than the others."""
    key = next(k for n in range(9) if home_of(k := b"k%d" % n) % 2 == 1)
    halves = writer.prepare(topic, 3, key=key)
    writer.end(halves, Resolution.COMMIT)
    last = str(halves[-1].message_id)
    writer.publish(lambda r: (r._replace(partition=0) if message_id(r) == last else r,))


def _outgrow(writer: OutboxWriter, topic: str) -> HalfMessage:
    """Begin the topic with the record of an undecided message; end it after the former topic."""
    (phantom,) = writer.prepare(topic, 1)
    writer.produce(writer.record(phantom))
    writer.produce(*[Record(topic, None, b"", number, ()) for number in (0, 1)] * 20)
    return phantom


def _commit_some(writer: OutboxWriter, topics: Iterable[str]) -> None:
    for topic in topics:
        writer.end(writer.prepare(topic, 8), Resolution.COMMIT)
    writer.publish()


def _run(
    session: SparkSession, writer: OutboxWriter, folder: Path, accepted: Iterable[str] = ()
) -> Report:
    parts = make_parts(session, writer)
    rule = {"foreign": "low", "severity": {"FOREIGN/record": "info"}}
    own = topic_rules({f"{writer.prefix}-{name}": rule for name in ("quiet", "expired")})
    accept = frozenset(accepted)
    report = Audit(parts, make_options(writer, folder, accept_topics=accept, topic_rules=own)).run()
    store_run(report, parts.run_store, samples=5)
    return report


def _recreate(writer: OutboxWriter, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": writer.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(30)

    def made() -> bool:
        try:
            admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
        except KafkaException:
            return False
        return True

    wait_for(made)


def _grow(writer: OutboxWriter, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": writer.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    facts = KafkaLogReader(writer.bootstrap_servers)
    wait_for(lambda: len(facts.partitions([topic])) == 3)


def test_an_unchanged_log_has_no_finding(story: Story) -> None:
    found = Counter((each.cause.value, each.half_id) for each in story.first.findings)
    assert found == {
        ("LOST/published", story.lost.half_id): 1,
        ("WRONG_PLACE/partition", None): 1,
        ("FOREIGN/record", None): 2,
    }


def test_expired_recreated_and_grown_topics_are_each_reported_once(story: Story) -> None:
    found = Counter((each.cause.value, each.topic) for each in story.second.findings)
    assert found == {
        ("LOST/published", story.topic("expired")): 1,
        ("UNVERIFIABLE/expired", story.topic("expired")): 2,
        ("LOG_CHANGED/recreated", story.topic("recreated")): 1,
        ("LOST/published", story.topic("recreated")): 8,
        ("ORPHAN/undecided", story.topic("recreated")): 1,
        ("LOG_CHANGED/partitions", story.topic("grown")): 1,
        ("FOREIGN/record", story.topic("quiet")): 1,
        ("FOREIGN/record", story.topic("expired")): 1,
        ("WRONG_PLACE/partition", story.topic("grown")): 1,
    }
    assert story.second.verdict is Verdict.FINDINGS


def test_an_accepted_topic_is_read_from_its_beginning_and_has_no_further_finding(
    story: Story,
) -> None:
    """Its beginning is below the end of the former topic, which the last run had read."""
    accepted = story.topic("recreated")
    assert story.third.plan.origin.sentence == (
        f"full run: {accepted} was recreated, and is accepted"
    )
    found = [(f.cause, f.half_id) for f in story.third.findings if f.topic == accepted]
    assert found == [("ORPHAN/undecided", story.phantom.half_id)]


def test_a_topic_that_has_grown_has_no_further_finding(story: Story) -> None:
    assert Cause.LOG_CHANGED_PARTITIONS not in {f.cause for f in story.third.findings}


def test_what_a_recreated_topic_lacks_is_lost_before_it_can_be_accepted(
    session: SparkSession, writer: OutboxWriter, tmp_path: Path
) -> None:
    """Nothing older is missing then, but what is released after that is judged."""
    topic = f"{writer.prefix}-accepted"
    writer.create_topics(topic)
    _, held, *_ = commit(writer, topic, 4)
    writer.publish(held=[held.half_id])
    hold(writer, [held])
    _run(session, writer, tmp_path)
    _recreate(writer, topic)
    lost = _run(session, writer, tmp_path, accepted={topic})
    assert Counter(f.cause for f in lost.findings) == {
        "LOST/published": 3,
        "LOG_CHANGED/recreated": 1,
        "UNPUBLISHED/held": 1,
    }
    accepted = _run(session, writer, tmp_path, accepted={topic})
    assert accepted.changes.unverifiable_by_cause == {"LOST/published": 3}
    writer.release(held, lambda record: ())
    reports = [accepted, _run(session, writer, tmp_path)]
    found = [[(each.cause, each.half_id) for each in r.findings] for r in reports]
    assert found == [[("UNPUBLISHED/held", held.half_id)], [("LOST/published", held.half_id)]]
    assert [each.counts.unverifiable for each in reports] == [3, 3]
