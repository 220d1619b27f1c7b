"""The times in a report are right wherever the machine of the audit is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from outbox.clock import SystemClock
from outbox.messages.message import Resolution
from spark.report.document import finding_document
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import commit, message_id, run

pytestmark = [*REAL_STORES, pytest.mark.deep]


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the local time of this process be nine hours ahead of UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def test_times_name_their_zone_and_are_those_of_the_stores(
    in_tokyo: None, writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    begun = SystemClock().now() - timedelta(minutes=5)
    _, doubled, *_ = commit(writer, topic, 4)
    (displaced,) = writer.prepare(topic, 1, partition=0)
    writer.end([displaced], Resolution.COMMIT)
    copies = {str(doubled.message_id): 2}
    writer.publish(
        lambda record: (record._replace(partition=1),) * copies.get(message_id(record), 1)
    )
    commit(writer, topic, 1)
    report = run(parts, replace(options, grace_seconds=0))
    shown = {each["class"]: each for each in (finding_document(f, report) for f in report.findings)}
    assert {"DUPLICATE", "WRONG_PARTITION", "OVERDUE"} <= shown.keys()
    texts = [
        *(
            shown[name][at]
            for name in ("DUPLICATE", "WRONG_PARTITION")
            for at in ("decided_at", "record_time")
        ),
        shown["OVERDUE"]["detail"]["oldest_committed_at"],
    ]
    now = SystemClock().now() + timedelta(minutes=5)
    assert [text for text in texts if not begun < datetime.fromisoformat(text) < now] == []
