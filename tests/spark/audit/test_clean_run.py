from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.messages.message import Resolution
from outbox.postgres.reconciliation.source import PostgresSource
from spark.audit.audit import Audit
from spark.cut.sources import Sources
from spark.findings.verdict import Verdict
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import shown

pytestmark = REAL_STORES

HEADERS = (("tenant", b"\x01\xff"), ("none", None))


@pytest.fixture
def writer(database_url: str, kafka_broker: EmbeddedKafka) -> OutboxWriter:
    """An installation without findings."""
    prefix = f"clean-{uuid4().hex[:8]}"
    return OutboxWriter(database_url, kafka_broker.bootstrap_servers, prefix)


def test_a_system_without_a_fault_is_clean(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    with PostgresSource(writer.database_url).snapshot() as snapshot:
        open_before = snapshot.undecided().prepared
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, 40, headers=HEADERS, content_type="text/plain")
    writer.end(halves[:30], Resolution.COMMIT)
    writer.end(halves[30:35], Resolution.ROLLBACK)
    writer.publish()
    writer.end(writer.prepare(topic, 5, key=None, value=None), Resolution.COMMIT)
    writer.publish()
    writer.abort(*[writer.record(half) for half in halves])

    report = Audit(parts, options).run()

    assert report.findings == ()
    assert (report.verdict, report.counts.judged, report.counts.records) == (Verdict.CLEAN, 35, 35)
    assert (report.counts.prepared, report.counts.in_flight) == (5 + open_before, 0)


@pytest.mark.deep
def test_a_run_without_spark_leaves_and_reports_what_spark_does(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    store_run(Audit(parts, options).run(), parts.run_store, samples=1)
    for key in (b"a", None, b"b"):
        writer.end(writer.prepare(topic, 5, headers=HEADERS, key=key), Resolution.COMMIT)
    writer.publish()
    writer.end(writer.prepare(topic, 2), Resolution.COMMIT)

    def no_spark() -> Sources:
        raise AssertionError("Spark was started")

    plain = Audit(replace(parts, sources=no_spark), options).run()
    by_spark = Audit(parts, replace(options, small_rows=0)).run()
    assert (plain.counts.records, plain.counts.judged, plain.counts.in_flight) == (15, 15, 2)
    assert (plain.versions, shown(plain)) == ({}, shown(by_spark))


@pytest.mark.deep
def test_what_producers_published_in_transactions_of_their_own_is_clean(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-plain"
    group, headers = f"group-of-{topic}", '{"tenant": "north"}'
    writer.create_topics(topic)
    halves = writer.prepare(topic, 5)
    writer.execute("SELECT outbox.allow_publish(current_user, %s, %s)", group, [topic])
    for n in range(10):
        key = f"member-{n % 3}"
        writer.execute(
            "SELECT outbox.publish(%s, %s, %s, %s, %s)", group, topic, b"v", key, headers
        )
    writer.execute("SELECT outbox.publish(%s, %s, NULL, transaction_id => 't-1')", group, topic)
    writer.end(halves, Resolution.COMMIT)
    writer.publish()

    report = Audit(parts, options).run()

    assert report.findings == ()
    assert (report.verdict, report.counts.judged, report.counts.records) == (Verdict.CLEAN, 16, 16)
