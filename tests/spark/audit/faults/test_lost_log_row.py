"""A row of the commit log is lost after its messages were published: every split finds the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.message import Resolution
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import commit, run

pytestmark = [*REAL_STORES, pytest.mark.deep]


def test_a_lost_row_of_the_commit_log_is_the_same_finding_in_one_run_and_in_two(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """The next run reads the record again, because the row that it needs is missing."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    commit(writer, topic, 30)
    writer.publish()
    (unlogged,) = writer.prepare(topic, 1, key=b"unlogged")
    writer.end([unlogged], Resolution.COMMIT)
    writer.publish()
    writer.execute("DELETE FROM outbox.commit_log WHERE half_ids = %s::int8[]", [unlogged.half_id])
    run(parts, options)
    commit(writer, topic, 30)
    writer.publish()
    runs = [run(parts, replace(options, full=full)) for full in (False, True)]
    assert runs[0].full_because == "a message that was decided COMMIT is not in the commit log"
    for each in runs:
        (found,) = each.findings
        assert (found.cause, found.shard) == ("MANIFEST_BREAK/chain", unlogged.shard)
        assert found.evidence["not_in_commit_log"] == [str(unlogged.message_id)]
