"""A fault that a run has found in its sample is looked at again by a run with another sample."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.message import Resolution
from spark.checks.sample import MESSAGES
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import classes, commit, run

pytestmark = [*REAL_STORES, pytest.mark.deep]

MISPLACED = 20


def test_a_full_run_closes_no_finding_that_is_outside_its_sample(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, MISPLACED, partition=0)
    writer.end(halves, Resolution.COMMIT)
    writer.publish(lambda record: (record._replace(partition=1),))
    first = run(parts, options)
    assert classes(first) == {"WRONG_PARTITION": MISPLACED}
    for _ in range(2):
        commit(writer, topic, MESSAGES)
    writer.publish()
    whole = run(parts, replace(options, full=True))
    assert (classes(whole), whole.changes.resolved) == ({"WRONG_PARTITION": MISPLACED}, 0)
