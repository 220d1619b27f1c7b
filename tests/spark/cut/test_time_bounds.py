"""A run bounded by times judges what is between them, and later runs continue from there."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from threading import Event

import pytest

from outbox.clock import SystemClock
from outbox.messages.record import Record
from spark.cut.time_bounds import EARLIEST
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import classes, commit, message_id, run

pytestmark = [*REAL_STORES, pytest.mark.deep]
APART = Event()
"""A wait that separates the record times before and after it by some milliseconds."""


def publish_all_but_one(writer: OutboxWriter, topic: str) -> datetime:
    """Commit and publish six messages, lose the first of them; return a time after that."""
    lost = str(commit(writer, topic, 6)[0].message_id)

    def without(record: Record) -> tuple[Record, ...]:
        return () if message_id(record) == lost else (record,)

    APART.wait(0.02)
    writer.publish(without)
    APART.wait(0.02)
    return SystemClock().now()


def test_a_run_from_a_time_up_to_another_judges_what_was_published_between(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """What is lost before and after the bounds is not reported until a run judges it too."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    since, until, _ = [publish_all_but_one(writer, topic) for _ in range(3)]

    between = run(parts, replace(options, since=since, until=until))
    assert (between.counts.judged, between.counts.in_flight, between.counts.ahead) == (6, 6, 5)
    assert (between.plan.cut_at, classes(between)) == (until, {"LOST": 1})
    assert between.plan.origin.reason == f"the first run, from {since.isoformat()}"

    rest = run(parts, options)
    assert (rest.plan.origin.run_id, rest.counts.judged) == (between.run_id, 6)
    assert classes(rest) == {"LOST": 2}

    everything = run(parts, replace(options, full=True, since=EARLIEST))
    assert (everything.counts.judged, classes(everything)) == (18, {"LOST": 3})
