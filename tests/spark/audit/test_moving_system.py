"""What is newer than the cut is counted and not judged; what was not read is never clean."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from outbox.kafka.log_reader import KafkaLogReader
from outbox.messages.message import Resolution
from outbox.postgres.reconciliation.source import PostgresSnapshot, PostgresSource
from outbox.reconciliation.log import LogEnd, Offsets, Partition
from outbox.reconciliation.snapshot import JdbcAddress, RelayCut
from spark.audit.audit import Audit
from spark.cut import sources
from spark.cut.reader import SnapshotMismatch
from spark.findings.finding_class import Cause
from spark.findings.verdict import Verdict
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options
from tests.spark.fixtures_stored_audit import note_progress

pytestmark = [*REAL_STORES, pytest.mark.deep]


@dataclass
class JumpingClock:
    """A clock that advances a minute at each reading, so that no test waits for a timeout."""

    seconds: float = 0.0

    def now(self) -> datetime:
        """Return some time."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        """Return a later time at each call."""
        self.seconds += 60
        return self.seconds


@dataclass
class Distracted:
    """A source whose database goes on as soon as the snapshot has been taken."""

    real: PostgresSource
    writer: OutboxWriter
    jdbc: JdbcAddress

    def topics(self) -> Sequence[str]:
        """Answer as the database does."""
        return self.real.topics()

    def listed(self) -> Sequence[RelayCut]:
        """Answer as the database does."""
        return self.real.listed()

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Take the snapshot, then commit something else."""
        with self.real.snapshot() as snapshot:
            self.writer.prepare(f"{self.writer.prefix}-points", 1)
            yield snapshot


class SilentPartition(KafkaLogReader):
    """Reads from a cluster where one partition's leader does not answer."""

    def __init__(self, bootstrap_servers: str, silent: Partition) -> None:
        super().__init__(bootstrap_servers)
        self._silent = silent

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Answer for all partitions but one."""
        answer = super().offsets([p for p in partitions if p != self._silent], end)
        if self._silent not in partitions:
            return answer
        return replace(answer, errors={self._silent: "leader not available"})


def test_what_is_not_yet_published_is_in_flight_and_overdue_after_the_grace(
    writer: OutboxWriter, parts: RunContext, options: Options, tmp_path: Path
) -> None:
    """A record ahead of the cut without a commit is unexpected all the same."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    earlier = writer.prepare(topic, 19) + writer.prepare(topic, 1, key=b"one-member")
    writer.end(earlier, Resolution.COMMIT)
    writer.publish()
    (undecided,) = writer.prepare(topic, 1)
    later = writer.prepare(topic, 5, key=b"one-member")
    writer.end(later, Resolution.COMMIT)
    writer.produce(writer.record(later[0], note_progress(writer, later[0].shard)))

    young = Audit(parts, options).run()
    assert (young.verdict, young.findings) == (Verdict.CLEAN, ())
    assert (young.counts.judged, young.counts.in_flight, young.counts.ahead) == (20, 5, 1)

    writer.produce(writer.record(undecided, batch=f"{undecided.shard}.99.0"))
    old = Audit(parts, make_options(writer, tmp_path, grace_seconds=0)).run()
    found = {each.cause: each for each in old.findings}
    assert found.keys() == {Cause.UNPUBLISHED_OVERDUE, Cause.ORPHAN_UNDECIDED}
    overdue = found[Cause.UNPUBLISHED_OVERDUE]
    assert (overdue.shard, overdue.evidence["overdue"]) == (later[0].shard, 5)


def test_a_partition_that_does_not_answer_makes_the_run_inconclusive_and_loses_nothing(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 20), Resolution.COMMIT)
    writer.publish()
    silent = SilentPartition(writer.bootstrap_servers, Partition(topic, 0))
    report = Audit(replace(parts, log_reader=silent), options).run()
    assert report.verdict is Verdict.INCONCLUSIVE
    assert [each.cause for each in report.findings] == [Cause.UNVERIFIABLE_NOT_READ]
    assert report.partitions_read == (1, 2)


def test_a_transaction_that_stays_open_makes_the_run_inconclusive(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 3), Resolution.COMMIT)
    writer.publish()
    hanging = Producer(
        {"bootstrap.servers": writer.bootstrap_servers, "transactional.id": f"{topic}-hanging"}
    )
    hanging.init_transactions(30)
    hanging.begin_transaction()
    hanging.produce(topic, b"", partition=1)
    hanging.flush(30)
    report = Audit(replace(parts, clock=JumpingClock()), options).run()
    hanging.abort_transaction(30)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert [each.cause for each in report.findings] == [Cause.UNVERIFIABLE_OPEN_TRANSACTION]


@pytest.mark.parametrize(
    ("setting", "broken"), [("IMPORT_SNAPSHOT", "SELECT '{}'"), ("FETCH_ROWS", 0)]
)
def test_a_reader_that_lost_the_snapshot_is_noticed(
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    broken: object,
) -> None:
    monkeypatch.setattr(sources, setting, broken)
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 4), Resolution.COMMIT)
    source: Any = Distracted(parts.source, writer, parts.source.jdbc)
    late = replace(parts, source=source)
    with pytest.raises(SnapshotMismatch):
        Audit(late, options).run()
