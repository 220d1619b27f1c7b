"""From what does not move on to findings, one each, with ids of their own."""

from __future__ import annotations

from datetime import UTC, datetime

from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.reconciliation.stalled import (
    ParkedGroup,
    SilentGroup,
    Stalled,
    StalledHalf,
    StalledTransaction,
)
from spark.checks.stalled import findings
from spark.findings.finding_class import FindingClass, Severity

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HALF_ID = HalfId(9 << 15 | 3)
EVERYTHING = Stalled(
    parked=(ParkedGroup("billing", 3, NOON, {"check_max": 3}),),
    halves=(StalledHalf(HALF_ID, 42, "billing", "points", "check_max", 15, NOON, "unknown"),),
    silent=(SilentGroup("billing", NOON, {"60": 7}, None),),
    transactions=(StalledTransaction(11, "psql", "idle in transaction", NOON, None),),
)


def test_nothing_stalled_is_no_finding() -> None:
    assert findings(Stalled()) == ()


def test_each_is_found_once_with_an_id_of_its_own() -> None:
    found = findings(EVERYTHING)
    assert [(each.finding_class, each.rule.severity) for each in found] == [
        (FindingClass.STUCK_HALF, Severity.HIGH),
        (FindingClass.CHECK_SILENT, Severity.CRITICAL),
        (FindingClass.PARKED, Severity.INFO),
        (FindingClass.XMIN_STALLED, Severity.MEDIUM),
    ]
    assert len({each.finding_id for each in found}) == 4


def test_a_stuck_half_shows_its_checks_and_their_last_outcome() -> None:
    found = findings(EVERYTHING)[0]
    assert found.message_id == str(message_id_of(HALF_ID, Nonce(42)))
    assert (found.shard, found.decision, found.producer_group) == (3, "NONE", "billing")
    assert found.detail == {
        "end_demanded_by": "check_max",
        "end_due_at": NOON.isoformat(),
        "checks_spent": 15,
        "last_outcome": "unknown",
    }


def test_the_group_and_the_session_are_named() -> None:
    _, silent, parked, session = findings(EVERYTHING)
    assert (silent.producer_group, silent.detail["positions"]) == ("billing", {"60": 7})
    assert (parked.detail["halves"], parked.detail["reasons"]) == (3, {"check_max": 3})
    assert (session.detail["pid"], session.detail["state"]) == (11, "idle in transaction")
