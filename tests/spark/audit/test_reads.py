"""What Spark's own defaults would hide: holes in a range."""

from __future__ import annotations

from dataclasses import replace

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from outbox.messages.message import Resolution
from outbox.reconciliation.log import LogEnd
from spark.cut.cut_plan import ranges
from spark.run_context import RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = REAL_STORES


def test_a_range_of_which_a_part_has_expired_is_not_read_at_all(
    writer: OutboxWriter, parts: RunContext
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 20), Resolution.COMMIT)
    writer.publish()
    writer.expire(topic, before=2)
    partitions = parts.log_reader.partitions([topic])
    starts = parts.log_reader.offsets(partitions, LogEnd.START)
    left = ranges(starts, parts.log_reader.offsets(partitions, LogEnd.LAST_STABLE))
    assert parts.sources().read_records(left).count() < 20
    with pytest.raises((PySparkException, Py4JError)):
        parts.sources().read_records([replace(each, start=0) for each in left]).collect()
