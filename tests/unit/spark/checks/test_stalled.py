"""From what does not move on to findings, one each, with ids of their own."""

from __future__ import annotations

from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.reconciliation.snapshot import Stalled
from spark.checks.stalled import findings
from spark.findings.finding_class import FindingClass, Severity

HALF = Stalled(
    finding_class="STUCK_HALF",
    half_id=HalfId(9 << 15 | 3),
    nonce=Nonce(42),
    producer_group="billing",
    topic="points",
    detail={"checks_spent": 15},
)


def test_each_is_found_once_with_an_id_of_its_own() -> None:
    found = findings(
        [
            HALF,
            Stalled(finding_class="CHECK_SILENT", producer_group="billing", detail={}),
        ]
    )
    assert [(each.finding_class, each.rule.severity) for each in found] == [
        (FindingClass.STUCK_HALF, Severity.HIGH),
        (FindingClass.CHECK_SILENT, Severity.CRITICAL),
    ]
    assert len({each.finding_id for each in found}) == 2


def test_a_stuck_half_shows_its_message_and_its_checks() -> None:
    (found,) = findings([HALF])
    assert found.message_id == str(message_id_of(HalfId(9 << 15 | 3), Nonce(42)))
    assert (found.shard, found.decision, found.producer_group) == (3, "NONE", "billing")
    assert found.detail == {"checks_spent": 15}
