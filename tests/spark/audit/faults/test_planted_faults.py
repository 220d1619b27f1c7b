"""One fault of each cause is planted on real stores; a run finds exactly those, by cause and id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.audit.audit import Audit
from spark.checks.stored_rows import NO_DECISION, NO_HALF, OTHER_CONTENT, OTHER_DIGEST
from spark.compare.field_diff import ALTERED
from spark.findings.verdict import Verdict
from spark.report.report import Report
from spark.report.store_run import store_run
from tests.spark.audit.faults.fixtures_every_fault import SECRET, plant
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_runs import comparing_buckets, make_options, make_parts
from tests.spark.fixtures_stored_audit import cause_in

pytestmark = [*REAL_STORES, pytest.mark.deep]


@dataclass(frozen=True)
class Planted:
    """What was planted and what a run made of it."""

    expected: dict[str, str | None]
    """Message id by cause; None if the message has lost its row."""
    report: Report
    document: dict[str, Any]
    writer: OutboxWriter
    folder: Path

    def finding(self, name: str) -> dict[str, Any]:
        """Return the finding of a planted fault as the JSON shows it."""
        of_message = [
            each for each in self.document["findings"] if each["message_id"] == self.expected[name]
        ]
        (found,) = [each for each in of_message if cause_in(each) == name.partition(":")[0]]
        return dict(found)


@pytest.fixture(scope="module")
def planted(
    session: SparkSession,
    module_writer: OutboxWriter,
    tmp_path_factory: pytest.TempPathFactory,
) -> Planted:
    """Plant one fault of each cause among clean messages, and run once."""
    writer, folder = module_writer, tmp_path_factory.mktemp("planted")
    expected = plant(writer)
    parts = make_parts(session, writer)
    with comparing_buckets():
        report = Audit(parts, make_options(writer, folder, show_keys=True)).run()
    document = store_run(report, parts.run_store, samples=50)
    return Planted(expected, report, document, writer, folder)


def test_a40_each_planted_fault_is_found_by_cause_and_id_and_nothing_else(planted: Planted) -> None:
    expected: set[tuple[str, str | None]] = {("MANIFEST_BREAK/chain", None)}  # of what was skipped
    expected |= {(name.partition(":")[0], message) for name, message in planted.expected.items()}
    found = {(each.cause.value, each.message_id) for each in planted.report.findings}
    assert found == expected
    assert len(planted.report.findings) == len(expected)


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ("rolled back", {"op_message": "has the decision ROLLBACK"}),
        ("no decision", {"op_message": NO_DECISION}),
        ("no half", {"half_message": NO_HALF}),
        ("another digest", {"half_message": OTHER_DIGEST}),
        ("another value", {"half_message": OTHER_CONTENT}),
    ],
)
def test_a_changed_row_is_named_with_what_is_wrong_in_it(
    planted: Planted, fault: str, shown: dict[str, str]
) -> None:
    assert planted.finding(f"INCONSISTENT/row: {fault}")["evidence"] == shown


def test_an_altered_value_that_was_published_is_no_drift_of_a_header(planted: Planted) -> None:
    found = planted.finding("ALTERED/value: altered before it was published")
    assert found["evidence"]["differs"] == {"value": ALTERED}


def test_the_verdict_and_totals_count_discrepancies_only(planted: Planted) -> None:
    assert planted.report.verdict is Verdict.FINDINGS
    assert planted.report.totals == {
        "missing": 4,
        "duplicate": 2,
        "unexpected": 5,
        "mismatch": 21,
        "disordered": 0,
        "coverage": 1,
    }


def test_the_counts_by_topic_and_by_group_add_up_to_those_of_the_run(planted: Planted) -> None:
    counts = planted.report.counts
    expected = {"committed": counts.judged, "records": counts.records, "lag": counts.in_flight}
    expected |= {"missing": 4, "duplicate": 2}
    for of in ("topics", "producer_groups"):
        rows = planted.document[of]
        assert {name: sum(row[name] for row in rows) for name in expected} == expected
    assert counts.foreign == 1  # counted, and not judged


def test_a_lost_message_names_the_manifest_that_lists_it(planted: Planted) -> None:
    (listing,) = planted.finding("LOST/published")["evidence"]["manifests"]
    assert (listing["status"], listing["message_id"]) == ("P", planted.expected["LOST/published"])


def test_a_duplicate_names_every_place(planted: Planted) -> None:
    places = planted.finding("DUPLICATE/repeated")["evidence"]["places"]
    assert [(place["same"], place["redriven"]) for place in places] == [(True, False)] * 2


def test_a_held_message_shows_the_reason(planted: Planted) -> None:
    assert planted.finding("UNPUBLISHED/held")["evidence"]["publish_error"] == "MSG_SIZE_TOO_LARGE"


def test_a_changed_value_is_shown_by_length_place_and_hash(planted: Planted) -> None:
    differs = planted.finding("ALTERED/value")["evidence"]["differs"]["value"]
    assert differs["first_difference_at"] == len(SECRET)
    assert differs["actual"]["bytes"] == len(SECRET) + 1


def test_no_value_is_in_any_output(planted: Planted) -> None:
    files = [each for each in (planted.folder / "reports").rglob("*") if each.is_file()]
    assert files
    assert not [each for each in files if SECRET in each.read_bytes()]


def test_the_parquet_holds_every_finding(planted: Planted, session: SparkSession) -> None:
    rows = session.read.parquet(f"{planted.document['report']['parquet']}/findings").collect()
    assert {row["message_id"] for row in rows} == {*planted.expected.values(), None}
