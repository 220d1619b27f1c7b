"""What a run still finds of messages whose half is retired, or whose record has expired."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from outbox.messages.message import HalfMessage
from outbox.messages.message_id import leaf_in
from spark.findings.verdict import Verdict
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import causes, commit, message_id, run

pytestmark = [*REAL_STORES, pytest.mark.deep]

LEAVES = (
    "SELECT i.inhparent::regclass::text, c.relname FROM pg_catalog.pg_inherits i"
    " JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid"
    " WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind = 'r' AND c.relname LIKE %s"
)


def retire(writer: OutboxWriter, half: HalfMessage) -> None:
    """Remove the leaf of a message from each table."""
    with psycopg.connect(writer.database_url, autocommit=True) as connection:
        pattern = rf"%\_{leaf_in(half.half_id)}"
        for table, leaf in connection.execute(LEAVES, [pattern]).fetchall():
            statement = f"ALTER TABLE {table} DETACH PARTITION outbox.{leaf}"
            connection.execute(statement.encode())


def forget(writer: OutboxWriter, half: HalfMessage) -> None:
    """Remove that leaf before a lower one: the run knows it by its number."""
    leaf = leaf_in(half.half_id)
    for table in ("half_message", "op_message"):
        writer.execute(f"DELETE FROM outbox.{table} WHERE half_id >> 35 = %s", leaf)
    writer.execute("DELETE FROM outbox.commit_log WHERE xid >> 20 = %s", leaf)
    writer.execute("INSERT INTO outbox.retired_leaf (leaf) VALUES (%s)", leaf)


@pytest.mark.parametrize("remove", [retire, forget])
def test_a_lost_message_whose_half_is_retired_is_unverifiable_and_not_resolved(
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    remove: Callable[[OutboxWriter, HalfMessage], None],
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = commit(writer, topic, 4)
    missing = str(halves[1].message_id)
    writer.publish(lambda record: () if message_id(record) == missing else (record,))
    assert causes(run(parts, options)) == {"LOST/published": 1}
    remove(writer, halves[1])
    report = run(parts, options)
    assert (causes(report), report.verdict) == ({}, Verdict.CLEAN)
    assert (report.changes.unverifiable, report.changes.resolved) == (1, 0)


def keep(writer: OutboxWriter, half: HalfMessage) -> None:
    """Remove nothing."""


@pytest.mark.parametrize(
    ("remove", "cause"),
    [(keep, "DUPLICATE/repeated"), (retire, "ORPHAN/unknown"), (forget, "ORPHAN/unknown")],
)
def test_a_record_that_is_written_again_is_found_though_its_first_has_expired(
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    remove: Callable[[OutboxWriter, HalfMessage], None],
    cause: str,
) -> None:
    """It looks like the only one, but it names a batch that a run had read before."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    (half,) = commit(writer, topic, 1)
    writer.publish()
    assert run(parts, options).verdict is Verdict.CLEAN
    writer.expire(topic, -1)
    remove(writer, half)
    writer.produce(writer.record(half))
    found = run(parts, options)
    assert found.full_because == "a record is of no message that is new"
    assert causes(found) == {cause: 1}
