"""A rerun between two runs: it judges as the next run will and leaves no trace for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outbox.messages.message import HalfMessage, Resolution
from spark.audit.rerun import rerun_once
from spark.jvm.spark_errors import RunNotFound
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import Alter, OutboxWriter
from tests.spark.fixtures_stored_audit import causes, run

pytestmark = [*REAL_STORES, pytest.mark.deep]

TABLES = (
    *("reconciliation_run", "reconciliation_report", "reconciliation_cut", "reconciliation_carry"),
    "progress",
)


def stored_state(writer: OutboxWriter, folder: Path) -> dict[str, Any]:
    """Return all that a run changes besides its findings: its tables and its folder."""
    with psycopg.connect(writer.database_url) as connection:
        rows = {
            name: sorted(connection.execute(f"SELECT t::text FROM outbox.{name} t").fetchall())
            for name in TABLES
        }
    return {**rows, "files": sorted(folder.rglob("*"))}


def all_but(*lost: HalfMessage) -> Alter:
    """Publish everything but these messages."""
    ids = {str(each.message_id).encode() for each in lost}
    return lambda record: () if ids & {value for _, value in record.headers} else (record,)


def test_a_rerun_stores_what_open_findings_became_and_leaves_all_else_to_the_next_run(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    (phantom,) = writer.prepare(topic, 1, key=b"phantom")
    repaired, lost, *others = writer.prepare(topic, 6)
    writer.end([repaired, lost, *others], Resolution.COMMIT)
    writer.publish(all_but(repaired, lost))
    writer.produce(writer.record(phantom))
    first = run(parts, options)
    assert causes(first) == {"LOST/published": 2, "ORPHAN/undecided": 1}

    writer.order_repair(repaired)
    writer.end([phantom], Resolution.ROLLBACK)
    new, *_ = fresh = writer.prepare(topic, 3)
    writer.end(fresh, Resolution.COMMIT)
    writer.publish(all_but(new))
    before = stored_state(writer, options.report_dir)
    rerun = rerun_once(parts, options, first.run_id)
    assert Counter((each.cause, each.status) for each in rerun.findings) == {
        ("LOST/published", "fixed"): 1,
        ("LOST/published", "open"): 1,
        ("ORPHAN/rolled_back", "open"): 1,
    }
    assert (rerun.new, rerun.report.plan.origin.run_id) == (1, first.run_id)
    assert stored_state(writer, options.report_dir) == before

    second = run(parts, options)
    assert second.plan.origin.run_id == second.previous_run_id == first.run_id
    assert causes(second) == {"LOST/published": 2, "ORPHAN/rolled_back": 1}
    assert (second.counts.records, second.counts.judged, second.changes.new) == (3, 3, 1)
    assert {each.half_id for each in second.findings if each.cause.value == "LOST/published"} == {
        lost.half_id,
        new.half_id,
    }
    became = Counter(each.status for each in parts.run_store.statuses(first.run_id) or ())
    assert became == {"fixed": 1, "open": 2}

    with pytest.raises(RunNotFound):
        rerun_once(parts, options, "nothing")
