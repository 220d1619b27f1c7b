"""The delivery mode at_least_once: losses are found by id, duplicates are reported as expected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from checker.relay_wiring import RelayBuilder
from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.message import HalfMessage, Resolution
from outbox.reconciliation.log import LogEnd, Partition
from outbox.settings.environment import load_settings
from outbox.telemetry.metrics import Metrics
from spark.audit.audit import Audit
from spark.findings.finding_class import FindingClass
from spark.findings.verdict import Verdict
from spark.report.report import Report
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options, make_parts

pytestmark = [*REAL_STORES, pytest.mark.deep]

RELEASED = (
    "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error,"
    " released_at, release_batch_no, released_partition, released_offset)"
    " VALUES (%s, %s, %s, %s, 1, 1, '', clock_timestamp(), 1, %s, %s)"
)
FORGET = "UPDATE outbox.progress SET (position, position_n) = (0, 0)"
PASS_ALL = (
    "UPDATE outbox.progress SET position = last.xid, position_n = cardinality(last.half_ids)"
    " FROM (SELECT xid, half_ids FROM outbox.commit_log ORDER BY xid DESC LIMIT 1) last"
)


def commit(writer: OutboxWriter, topic: str, count: int) -> list[HalfMessage]:
    """Prepare and commit messages of one key."""
    halves = writer.prepare(topic, count, key=b"member-1")
    writer.end(halves, Resolution.COMMIT)
    return halves


def relay(writer: OutboxWriter, delivery: str, shard: int) -> None:
    """Publish what is committed with the real relay, then stop it."""
    environment = {
        "OUTBOX_DATABASE_URL": writer.database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": writer.bootstrap_servers,
        "OUTBOX_RELAY_DELIVERY": delivery,
    }
    builder = RelayBuilder(load_settings(environment), Metrics(), writer.progress_topic)
    opened = builder.open(shard)
    while not (done := opened.run_once()).until_commits:
        assert done.halt is None
        Event().wait(min(done.rest_seconds, 0.1))
    opened.close()


def ids_of(report: Report, finding_class: FindingClass) -> set[str | None]:
    """Return the messages of a class of findings."""
    return {each.message_id for each in report.findings if each.finding_class is finding_class}


def texts(halves: list[HalfMessage]) -> set[str]:
    return {str(half.message_id) for half in halves}


def test_losses_are_found_exactly_and_duplicates_expected_also_after_the_lane_was_left(
    session: SparkSession, writer: OutboxWriter, tmp_path: Path
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    repeated = commit(writer, topic, 10)
    shard = repeated[0].shard
    relay(writer, "at_least_once", shard)
    writer.execute(FORGET)
    relay(writer, "at_least_once", shard)
    lost = commit(writer, topic, 3)
    writer.execute(PASS_ALL)
    commit(writer, topic, 2)
    for in_flight in (2, 0):
        report = Audit(make_parts(session, writer), make_options(writer, tmp_path)).run()
        assert ids_of(report, FindingClass.EXPECTED_DUPLICATE) == texts(repeated)
        assert ids_of(report, FindingClass.LOST) == texts(lost)
        assert len(report.findings) == 13
        assert (report.verdict, report.counts.in_flight) == (Verdict.FINDINGS, in_flight)
        assert "0 duplicated" in report.sentence
        assert "10 expected duplicates" in report.sentence
        relay(writer, "exactly_once", shard)


def test_a_message_that_was_held_and_then_published_is_lost_without_its_record(
    session: SparkSession, writer: OutboxWriter, tmp_path: Path
) -> None:
    """No manifest lists the release; the place that the relay recorded for it does."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    shard = commit(writer, topic, 3)[0].shard
    relay(writer, "at_least_once", shard)
    (place,) = (p for p, end in ends_of(writer, topic).items() if end)
    gone, newer = commit(writer, topic, 2)
    for half, offset in ((gone, 1), (newer, 3)):
        row = (half.half_id, half.nonce, shard, half.message.topic_id, place.number, offset)
        writer.execute(RELEASED, *row)
    writer.execute(PASS_ALL)
    report = Audit(make_parts(session, writer), make_options(writer, tmp_path)).run()
    assert ids_of(report, FindingClass.LOST) == texts([gone])
    assert (len(report.findings), report.verdict) == (1, Verdict.FINDINGS)


def ends_of(writer: OutboxWriter, topic: str) -> Mapping[Partition, int]:
    """Return the end of each partition of a topic."""
    reader = KafkaLogReader(writer.bootstrap_servers)
    return reader.offsets(reader.partitions([topic]), LogEnd.HIGH_WATERMARK).offsets


def test_a_lane_that_only_repeats_is_clean(
    session: SparkSession, writer: OutboxWriter, tmp_path: Path
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    shard = commit(writer, topic, 5)[0].shard
    relay(writer, "exactly_once", shard)
    commit(writer, topic, 5)
    relay(writer, "at_least_once", shard)
    writer.execute(FORGET)
    relay(writer, "at_least_once", shard)
    relay(writer, "exactly_once", shard)
    commit(writer, topic, 5)
    relay(writer, "exactly_once", shard)
    report = Audit(make_parts(session, writer), make_options(writer, tmp_path)).run()
    assert {each.finding_class for each in report.findings} == {FindingClass.EXPECTED_DUPLICATE}
    assert (report.verdict, report.counts.judged) == (Verdict.CLEAN, 15)
