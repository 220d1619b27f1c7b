"""The state machine, cell by cell."""

from __future__ import annotations

import pytest

from outbox.messages.message import Resolution, State
from outbox.messages.state_machine import DECISION_OF, NEXT, UNDECIDED, contradicts, derive, end

COMMIT, ROLLBACK, UNKNOWN = Resolution.COMMIT, Resolution.ROLLBACK, Resolution.UNKNOWN
P, K, C, D, R = (
    State.PREPARED,
    State.PARKED,
    State.COMMITTED,
    State.PUBLISHED,
    State.ROLLED_BACK,
)
CELLS = [
    (P, COMMIT, C, False),
    (P, ROLLBACK, R, False),
    (P, UNKNOWN, P, False),
    (K, COMMIT, C, False),
    (K, ROLLBACK, R, False),
    (K, UNKNOWN, K, False),
    (C, COMMIT, C, False),
    (C, ROLLBACK, C, True),
    (C, UNKNOWN, C, False),
    (D, COMMIT, D, False),
    (D, ROLLBACK, D, True),
    (D, UNKNOWN, D, False),
    (R, COMMIT, R, True),
    (R, ROLLBACK, R, False),
    (R, UNKNOWN, R, False),
]


@pytest.mark.parametrize(("state", "resolution", "after", "conflict"), CELLS)
def test_every_resolution_in_every_state_does_what_the_table_says(
    state: State, resolution: Resolution, after: State, conflict: bool
) -> None:
    assert (end(state, resolution), contradicts(state, resolution)) == (after, conflict)


def test_only_undecided_states_change() -> None:
    assert {state for state, _ in NEXT} == UNDECIDED == set(State) - set(DECISION_OF)


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
