"""What turns up of messages that earlier runs have judged makes a run read everything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from outbox.messages.message_id import HalfId
from spark.audit.late_arrivals import has_republished_message
from spark.compare import open_items
from spark.cut.checkpoint import Previous
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from tests.spark.fixtures_markers import ON_SPARK
from tests.spark.fixtures_previous_run import previous

pytestmark = ON_SPARK


def with_open(finding_class: FindingClass) -> Previous:
    """Return a run that has left a finding of the message 7 open."""
    found = Finding(finding_class=finding_class, subject="message:7", half_id=HalfId(7))
    return previous(open_items._finding_row(found))


@pytest.mark.parametrize(
    ("finding_class", "record", "again"),
    [
        (FindingClass.POSITION_DRIFT, (7, 3, False), True),
        (FindingClass.POSITION_DRIFT, (7, None, False), False),
        (FindingClass.POSITION_DRIFT, (7, 3, True), False),
        (FindingClass.POSITION_DRIFT, (8, 3, False), False),
        (FindingClass.ORDER_INVERSION, (7, 3, False), False),
    ],
)
def test_another_record_in_turn_of_a_message_that_had_not_named_its_place_turns_up(
    session: SparkSession,
    finding_class: FindingClass,
    record: tuple[int, int | None, bool],
    again: bool,
) -> None:
    """One of its records in its place is enough; a repair's is in no place."""
    columns = "half_id bigint, batch_no bigint, redriven boolean"
    records = session.createDataFrame([record], columns)
    frames: Any = SimpleNamespace(records=records, new_records=records)
    assert has_republished_message(with_open(finding_class), frames) is again
