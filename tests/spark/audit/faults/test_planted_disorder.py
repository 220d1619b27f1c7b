"""Disorder and wrong places, planted on real stores: one run finds them all.

Every fault has a separate topic, beside clean messages; one run reports all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.audit.audit import Audit
from spark.findings.verdict import Verdict
from spark.report.report import Report
from spark.report.store_run import store_run
from tests.spark.audit.faults.fixtures_planted_disorder import Plant
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import comparing_buckets, make_options, make_parts
from tests.spark.fixtures_stored_audit import cause_in

pytestmark = [*REAL_STORES, pytest.mark.deep]


@dataclass(frozen=True)
class Planted:
    """What was planted and what a run made of it."""

    expected: set[tuple[str, str]]
    """Cause, and message id or topic."""
    report: Report
    document: dict[str, Any]

    def finding(self, name: str) -> dict[str, Any]:
        """Return the first finding of a cause as the JSON shows it."""
        return next(each for each in self.document["findings"] if cause_in(each) == name)


@pytest.fixture(scope="module")
def planted(
    session: SparkSession, module_writer: OutboxWriter, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    """Plant everything, and compare buckets first, as only a large run does of itself."""
    plant = Plant(module_writer)
    expected = plant.everything()
    parts = make_parts(session, module_writer)
    options = make_options(module_writer, tmp_path_factory.mktemp("disorder"))
    with comparing_buckets():
        report = Audit(parts, options).run()
    document = store_run(report, parts.run_store, samples=50)
    return Planted(expected, report, document)


def test_a40_each_planted_disorder_is_found_and_nothing_else(planted: Planted) -> None:
    found = [(f.cause.value, f.message_id or f.topic) for f in planted.report.findings]
    assert set(found) == planted.expected
    assert len(found) == len(planted.expected)


def test_the_totals_and_the_sentence_count_them_by_kind(planted: Planted) -> None:
    totals = {kind: n for kind, n in planted.report.totals.items() if n}
    assert totals == {"mismatch": 2, "disordered": 4, "coverage": 1}
    assert planted.report.verdict is Verdict.FINDINGS
    assert "2 mismatch, 4 disordered; " in planted.report.sentence
    assert planted.report.sentence.endswith("; 1 coverage findings")


def test_an_inversion_names_the_record_before_it(planted: Planted) -> None:
    finding = planted.finding("ORDER_INVERSION/key")
    assert finding["evidence"]["offsets_apart"] == 1
    assert finding["evidence"]["behind_offset"] == finding["offset"] - 1
    assert tuple(finding["evidence"]["behind_position"]) > finding["position"]


def test_a_misplaced_key_shows_its_first_records_and_their_partitions(planted: Planted) -> None:
    (evidence,) = (
        each["evidence"]
        for each in planted.document["findings"]
        if cause_in(each) == "WRONG_PLACE/partition" and each["message_id"] is None
    )
    (first,) = evidence["first"]
    assert (evidence["records"], evidence["keys"]) == (1, 1)
    assert (first["partition"], first["expected"]) == (0, 1)


def test_a_wrong_recorded_place_is_shown_with_the_true_place(planted: Planted) -> None:
    (message,) = planted.finding("WRONG_OFFSET/recorded")["evidence"]["messages"]
    assert message["recorded"] == {"partition": 0, "offset": 7}
    assert message["actual"] == {"partition": 0, "offset": 1}
