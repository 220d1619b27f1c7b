"""More losses than are looked up one by one: each is counted and named, and the first are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet  # type: ignore[import-untyped]

from outbox.messages.message_id import HalfId
from spark.audit import suspects
from spark.audit.audit import Audit
from spark.findings import ledger
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import make_options
from tests.spark.fixtures_stored_audit import cause_in, commit

pytestmark = [*REAL_STORES, pytest.mark.deep]

LOST, EXPIRED, LOOKED_UP = 9, 2, 3


def test_losses_that_are_not_looked_up_are_the_findings_that_looking_them_up_gives(
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    commit(writer, topic, 40)
    writer.publish()
    writer.expire(topic, before=5)
    halves = commit(writer, topic, LOST + EXPIRED)
    writer.publish(lambda record: ())
    record_places(writer, expired=[half.half_id for half in halves[LOST:]])
    each = Audit(parts, options).run()
    for module in (suspects, ledger):
        monkeypatch.setattr(module, "KEPT", LOOKED_UP)
    many = Audit(parts, make_options(writer, tmp_path / "many")).run()
    assert lost_in(many) == lost_in(each)
    assert (many.cause_counts, many.spans) == (each.cause_counts, each.spans)
    assert many.counts.unverifiable == each.counts.unverifiable >= EXPIRED
    assert [f.half_id for f in many.findings] == [h.half_id for h in halves[:LOOKED_UP]]


def record_places(writer: OutboxWriter, expired: list[HalfId]) -> None:
    """Record a place for each message of the second batches: before the log begins, or after."""
    writer.execute(
        "INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n,"
        " published_at, half_ids, partitions, offsets)"
        " SELECT shard, xid, cardinality(half_ids), 2, 0, 0, clock_timestamp(), half_ids,"
        " array_fill(0, ARRAY[cardinality(half_ids)]),"
        " ARRAY(SELECT CASE WHEN h = ANY (%s) THEN 1 ELSE 7 END FROM unnest(half_ids) h)"
        " FROM outbox.commit_log WHERE xid = (SELECT max(xid) FROM outbox.commit_log)",
        expired,
    )


def lost_in(report: Report) -> set[tuple[object, ...]]:
    """Return what the Parquet files say of each lost message."""
    columns = ("finding_id", "severity", "message_id", "topic", "shard", "producer_group")
    rows = parquet.read_table(report.folder / "findings").to_pylist()
    lost = [row for row in rows if cause_in(row) == "LOST/published"]
    return {tuple(row[name] for name in columns) for row in lost}
