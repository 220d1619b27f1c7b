"""A key in one partition before a cut and in another one after it, on real stores."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from outbox.messages.message import Resolution
from outbox.messages.record import Record
from spark.checks.misplaced_keys import SPLIT
from spark.columns.murmur2 import partition_of
from spark.cut import log_history
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import run

pytestmark = [*REAL_STORES, pytest.mark.deep]

LAST = 1
"""The last partition: once a shard has published there, its relay knows that there are two."""


def test_a_key_split_by_a_cut_is_found_from_either_side_as_one_run_finds_it(
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two topics one has the misplaced record before the cut, the other one after it.

    A third one has no other record in its last partition: the runs before have counted them.
    """
    monkeypatch.setattr(log_history, "METADATA_AGE", timedelta(0))
    early, late, low = (f"{writer.prefix}-{name}" for name in ("early", "late", "low"))
    writer.create_topics(early, late, low)
    first_key = next(k for n in range(9) if partition_of(k := b"k%d" % n, 2) == 0)
    commit(writer, low, first_key, None)
    for topic in (early, late):
        commit(writer, topic, b"moved", LAST)
        commit(writer, topic, b"moved", None)
    writer.publish(lambda record: (elsewhere(record) if record.topic == early else record,))
    first = run(parts, options)
    assert split(first) == set()

    commit(writer, early, b"moved", None)
    commit(writer, late, b"moved", None)
    writer.publish(lambda record: (elsewhere(record) if record.topic == late else record,))
    second = run(parts, options)
    assert second.plan.origin.reason == SPLIT
    assert split(second) == {early, late}

    commit(writer, low, first_key, None)
    writer.publish()
    commit(writer, low, first_key, None)
    writer.publish(one_elsewhere)
    third = run(parts, options)
    assert third.plan.origin.reason == SPLIT
    assert split(third) == {early, late, low}


def commit(writer: OutboxWriter, topic: str, key: bytes, partition: int | None) -> None:
    """Prepare and commit a message that asks for a partition or for none."""
    writer.end(writer.prepare(topic, 1, key=key, partition=partition), Resolution.COMMIT)


def one_elsewhere(record: Record) -> Iterable[Record]:
    """Publish a record in the other partition."""
    return (elsewhere(record),)


def elsewhere(record: Record) -> Record:
    """Send a record to the other one of two partitions, unless one was asked for."""
    if record.key is None or record.partition is not None:
        return record
    return record._replace(partition=1 - partition_of(record.key, 2))


def split(report: Report) -> set[str | None]:
    """Return the topics with a split key."""
    names: Iterable[str | None] = (
        each.topic for each in report.findings if each.finding_class.value == "KEY_SPLIT"
    )
    return {*names}
