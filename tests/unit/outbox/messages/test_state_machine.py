"""The state of a message, cell by cell; every event in every state: tests/contract."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from outbox.messages.message import DecidedBy, MessageStatus, OpMessage, Resolution, State
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.state_machine import derive

NOON = datetime(2026, 1, 1, tzinfo=UTC)
COMMIT, ROLLBACK, UNKNOWN = Resolution.COMMIT, Resolution.ROLLBACK, Resolution.UNKNOWN
P, K, C, D, R = (
    State.PREPARED,
    State.PARKED,
    State.COMMITTED,
    State.PUBLISHED,
    State.ROLLED_BACK,
)


@pytest.mark.parametrize(
    ("decision", "resolution", "conflict"),
    [
        (None, COMMIT, False),
        (None, ROLLBACK, False),
        (None, UNKNOWN, False),
        (COMMIT, COMMIT, False),
        (COMMIT, ROLLBACK, True),
        (COMMIT, UNKNOWN, False),
        (ROLLBACK, COMMIT, True),
        (ROLLBACK, ROLLBACK, False),
        (ROLLBACK, UNKNOWN, False),
    ],
)
def test_only_the_opposite_of_the_decision_contradicts_it(
    decision: Resolution | None, resolution: Resolution, conflict: bool
) -> None:
    op = None
    if decision is not None:
        op = OpMessage(decision=decision, decided_by=DecidedBy.PRODUCER, decided_at=NOON)
    state = derive(decision=decision, parked=False, published=False)
    status = MessageStatus(
        half_id=HalfId(1), nonce=Nonce(1), producer_group_id=1, state=state, op=op
    )
    assert status.contradicts(resolution) is conflict


@pytest.mark.parametrize("parked", [True, False])
@pytest.mark.parametrize("published", [True, False])
def test_a_decision_has_priority_over_parking(parked: bool, published: bool) -> None:
    assert derive(decision=ROLLBACK, parked=parked, published=published) is R
    assert derive(decision=COMMIT, parked=parked, published=published) is (D if published else C)


def test_a_held_record_is_committed_although_the_position_is_after_it() -> None:
    assert derive(decision=COMMIT, parked=False, published=True, held=True) is C


def test_an_undecided_half_is_parked_or_prepared() -> None:
    assert derive(decision=None, parked=True, published=False) is K
    assert derive(decision=None, parked=False, published=True) is P
