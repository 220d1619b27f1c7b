"""The partition and the note of one sampled message."""

from __future__ import annotations

import pytest

from outbox.reconciliation.snapshot import RecordedPlace
from spark.checks.sample import SampledMessage, message_findings
from spark.findings.finding_class import FindingClass
from tests.unit.spark.fixtures_samples import AWAY, HOME, row, sampled


def classes(found: SampledMessage) -> list[FindingClass]:
    """Return the classes that are found."""
    return [each.finding_class for each in message_findings(found)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (sampled(row(HOME)), []),
        (sampled(row(AWAY), asked=AWAY), []),
        (sampled(row(HOME), asked=AWAY), [FindingClass.WRONG_PARTITION]),
        (sampled(row(AWAY), row(HOME), asked=AWAY), [FindingClass.WRONG_PARTITION]),
    ],
)
def test_each_record_is_in_the_requested_partition(
    given: SampledMessage, expected: list[FindingClass]
) -> None:
    assert classes(given) == expected


def test_the_finding_has_the_same_id_whichever_fault_names_it() -> None:
    note = RecordedPlace(partition=HOME, offset=6, batch_no=2)
    (alone,) = message_findings(sampled(row(HOME), recorded=note))
    (worse,) = message_findings(sampled(row(AWAY), asked=HOME, recorded=note))
    assert alone.finding_id == worse.finding_id
