"""A record may name a batch after the cut only if the relay can have published such a batch."""

from __future__ import annotations

import pytest

from outbox.messages.message import Resolution
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import classes, commit, note_progress, run

pytestmark = [*REAL_STORES, pytest.mark.deep]


@pytest.mark.parametrize("forged", [1000, (1 << 62)])
def test_a_record_of_a_batch_that_no_relay_has_published_is_a_duplicate(
    writer: OutboxWriter, parts: RunContext, options: Options, forged: int
) -> None:
    """The next batch of the relay is not judged: it is published while the audit begins."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    (twice,) = commit(writer, topic, 1)
    writer.publish()
    (next_one,) = writer.prepare(topic, 1, key=twice.message.key)
    next_batch = note_progress(writer, twice.shard)
    writer.end([next_one], Resolution.COMMIT)
    writer.produce(
        writer.record(twice, f"{twice.shard}.{forged}.0"), writer.record(next_one, next_batch)
    )
    report = run(parts, options)
    assert (classes(report), report.counts.ahead) == ({"DUPLICATE": 1}, 1)
