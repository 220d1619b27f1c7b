"""A record whose message id is malformed claims to be ours: it is a finding of its topic."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from outbox.messages.message import Resolution
from outbox.messages.record import MESSAGE_ID, Record
from spark.audit.audit import Audit
from spark.findings.finding_class import FindingClass
from spark.findings.verdict import Verdict
from spark.report.document import command
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = [*REAL_STORES, pytest.mark.deep]

MALFORMED = (None, b"", b"x'; rm -rf", b"00000000-0001-4000-8000-000000000007", b"\xff" * 100)
"""None is a header that is present without a value."""


def test_a_malformed_message_id_is_a_finding_that_stays_until_a_full_read(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 5), Resolution.COMMIT)
    writer.publish()
    writer.produce(Record(topic, None, b"of another writer", 0, ()))
    named = [((MESSAGE_ID, cast("bytes", each)),) for each in MALFORMED]
    writer.produce(*[Record(topic, b"k", b"", 0, headers) for headers in named])
    for full in (False, False, True):
        report = Audit(parts, replace(options, full=full)).run()
        store_run(report, parts.run_store, samples=50)
        (found,) = report.findings
        assert (found.finding_class, found.topic) == (FindingClass.UNKNOWN_ID, topic)
        assert (found.detail["records"], report.verdict) == (len(MALFORMED), Verdict.FINDINGS)
        shown = command(found, report.run_id)
        assert shown is not None
        assert shown.startswith("kafka-acls.sh --bootstrap-server ")
        assert shown.endswith(f" --list --topic {topic}")
    assert report.counts.foreign == 1
