"""A record may name a batch after the cut only if the relay can have published such a batch."""

from __future__ import annotations

from typing import Final

import pytest

from outbox.messages.message import Resolution
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import causes, commit, note_progress, run

pytestmark = [*REAL_STORES, pytest.mark.deep]


FORGED: Final = (1000, 1 << 62)


def test_a_record_of_a_batch_that_no_relay_has_published_is_a_duplicate(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """The next batch of the relay is not judged: it is published while the audit begins."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    twice = commit(writer, topic, len(FORGED))
    writer.publish()
    (next_one,) = writer.prepare(topic, 1, key=twice[0].message.key)
    next_batch = note_progress(writer, twice[0].shard)
    writer.end([next_one], Resolution.COMMIT)
    forged = zip(twice, FORGED, strict=True)
    copies = (writer.record(half, f"{half.shard}.{batch}.0") for half, batch in forged)
    writer.produce(*copies, writer.record(next_one, next_batch))
    report = run(parts, options)
    assert (causes(report), report.counts.ahead) == ({"DUPLICATE/repeated": len(FORGED)}, 1)
