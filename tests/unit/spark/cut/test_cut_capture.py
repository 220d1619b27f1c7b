"""In which order the two stores are asked: the order is what makes a cut exact."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest

from outbox.reconciliation.log import LogEnd
from spark.audit.audit import Audit
from spark.cut.cut_capture import capture_log_cut
from spark.progress import Progress
from spark.run_context import Options, RunContext
from tests.unit.spark.cut.fixtures_noted_log import DATA, MANIFESTS, Clock, Noting, SnapshotTaken

MANIFEST_END = ("progress", LogEnd.LAST_STABLE)
DATA_HIGH, DATA_STABLE = ("points", LogEnd.HIGH_WATERMARK), ("points", LogEnd.LAST_STABLE)


class NoRuns:
    """A run store before the first run."""

    def checkpoint(self) -> None:
        """Return no cut."""

    def remaining(self, *asked: object) -> list[Any]:
        """Return no finding."""
        return []


def asked_by_a_run() -> list[Any]:
    """Return what a run asks the stores up to the snapshot, in order."""
    stores, clock = Noting(), Clock()
    parts = RunContext(
        source=cast("Any", stores),
        log_reader=cast("Any", stores),
        run_store=cast("Any", NoRuns()),
        sources=cast("Any", None),
        clock=clock,
        progress=Progress(stream=StringIO(), clock=clock),
        pause=lambda seconds: None,
    )
    options = Options(
        progress_topic="progress",
        report_dir=Path("nowhere"),
        stage_uri="file:///nowhere",
        grace_seconds=0,
    )
    with pytest.raises(SnapshotTaken):
        Audit(parts, options).run()
    return stores.asked


def test_the_snapshot_is_taken_last() -> None:
    asked = asked_by_a_run()
    assert asked[-1] == "snapshot"
    assert {MANIFEST_END, DATA_HIGH, DATA_STABLE, "listed", "topics"} <= set(asked)


def test_the_manifests_end_before_the_records_and_both_before_the_wait() -> None:
    asked = asked_by_a_run()
    order = [asked.index(each) for each in (MANIFEST_END, "topics", DATA_HIGH, DATA_STABLE)]
    assert order == sorted(order)
    assert asked.index("listed") < asked.index(DATA_HIGH)


def test_every_transaction_below_the_high_watermark_is_waited_for() -> None:
    stores = Noting()
    log = capture_log_cut(
        cast("Any", stores), "progress", stores.topics, Clock(), lambda seconds: None
    )
    assert (stores.looks, log.gaps) == (3, ())
    assert [(each.partition, each.start, each.end) for each in log.records] == [(DATA, 0, 12)]
    assert [(each.partition, each.end) for each in log.manifests] == [(MANIFESTS, 10)]
