"""What Spark's own defaults would hide: records that were aborted, and holes in a range."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from outbox.messages.message import Resolution
from outbox.reconciliation.log import LogEnd
from spark.cut.cut_plan import Range, ranges
from spark.run_context import RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = REAL_STORES


def whole(parts: RunContext, topic: str, start: int | None = None) -> Iterable[Range]:
    """Return the range of a topic from its beginning or from a given offset on."""
    partitions = parts.log_reader.partitions([topic])
    starts = parts.log_reader.offsets(partitions, LogEnd.START)
    ends = parts.log_reader.offsets(partitions, LogEnd.LAST_STABLE)
    found = ranges(starts, ends)
    if start is None:
        return found
    return [Range(partition=each.partition, start=start, end=each.end) for each in found]


def test_a_range_of_which_a_part_has_expired_is_not_read_at_all(
    writer: OutboxWriter, parts: RunContext
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 20), Resolution.COMMIT)
    writer.publish()
    writer.expire(topic, before=2)
    assert parts.sources().read_records(whole(parts, topic)).count() < 20
    with pytest.raises((PySparkException, Py4JError)):
        parts.sources().read_records(whole(parts, topic, start=0)).collect()
