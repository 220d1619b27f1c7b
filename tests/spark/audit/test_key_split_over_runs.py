"""A key in one partition before a cut and in another one after it, on real stores."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from outbox.messages.message import Resolution
from outbox.messages.murmur2 import partition_of
from outbox.messages.record import Record
from spark.checks.misplaced_keys import SPLIT
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import run

pytestmark = [*REAL_STORES, pytest.mark.deep]

LAST = 1
"""The last partition: once a shard has published there, its relay knows that there are two."""


def test_a_key_split_by_a_cut_is_found_from_either_side_as_one_run_finds_it(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """Of two topics one has the misplaced record before the cut, the other one after it."""
    early, late = f"{writer.prefix}-early", f"{writer.prefix}-late"
    writer.create_topics(early, late)
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


def commit(writer: OutboxWriter, topic: str, key: bytes, partition: int | None) -> None:
    """Prepare and commit a message that asks for a partition or for none."""
    writer.end(writer.prepare(topic, 1, key=key, partition=partition), Resolution.COMMIT)


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
