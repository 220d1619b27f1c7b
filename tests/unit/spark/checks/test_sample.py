"""The partition and the note of one sampled message."""

from __future__ import annotations

import pytest

from outbox.messages.message_id import HalfId
from outbox.reconciliation.snapshot import RecordedPlace
from spark.checks.sample import SampledMessage, message_findings, place_findings
from spark.findings.finding_class import Cause
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_samples import AWAY, HOME, row, sampled
from tests.unit.spark.fixtures_suspects import HALF

OTHER = replace(HALF, half_id=HalfId(HALF.half_id + 16))


def causes(found: SampledMessage) -> list[Cause]:
    """Return the causes that are found."""
    return [each.cause for each in message_findings(found)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (sampled(row(HOME)), []),
        (sampled(row(AWAY), asked=AWAY), []),
        (sampled(row(HOME), asked=AWAY), [Cause.WRONG_PLACE_PARTITION]),
        (sampled(row(AWAY), row(HOME), asked=AWAY), [Cause.WRONG_PLACE_PARTITION]),
    ],
)
def test_each_record_is_in_the_requested_partition(
    given: SampledMessage, expected: list[Cause]
) -> None:
    assert causes(given) == expected


def test_wrong_recorded_places_are_one_finding_per_topic_and_cause() -> None:
    """A later run keeps what the earlier one has shown."""
    at = {name: RecordedPlace(partition=name, offset=6, batch_no=2) for name in (HOME, AWAY)}
    wrong = [sampled(row(HOME), recorded=at[name]) for name in (HOME, HOME, AWAY)]
    offset, partition = place_findings(wrong)
    assert [each.evidence["in_sample"] for each in (offset, partition)] == [2, 1]
    assert partition.evidence["messages"][0]["actual"] == {"partition": HOME, "offset": 5}
    (again,) = place_findings([sampled(row(HOME, offset=9), recorded=at[AWAY])], [partition])
    assert again.finding_id == partition.finding_id
    (other,) = place_findings([sampled(row(HOME), recorded=at[HOME], half=OTHER)], [offset])
    assert [each["message_id"] for each in other.evidence["messages"]] == [
        str(each.message_id) for each in (HALF, OTHER)
    ]
