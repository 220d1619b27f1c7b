"""From what does not move on to findings, one each, with ids of their own."""

from __future__ import annotations

from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.reconciliation.snapshot import Stalled
from spark.checks.stalled import findings
from spark.findings.finding_class import Cause

HALF = Stalled(
    cause="STUCK/half",
    half_id=HalfId(9 << 15 | 3),
    nonce=Nonce(42),
    producer_group="billing",
    topic="points",
    evidence={"checks_spent": 15},
)


def test_each_is_found_once_with_an_id_of_its_own() -> None:
    found = findings([HALF, Stalled(cause="STUCK/checks", producer_group="billing", evidence={})])
    assert [each.cause for each in found] == [Cause.STUCK_HALF, Cause.STUCK_CHECKS]
    assert len({each.finding_id for each in found}) == 2


def test_a_stuck_half_shows_its_message_and_its_checks() -> None:
    (found,) = findings([HALF])
    assert found.message_id == str(message_id_of(HalfId(9 << 15 | 3), Nonce(42)))
    assert (found.shard, found.decision, found.producer_group) == (3, "NONE", "billing")
    assert found.evidence == {"checks_spent": 15}
