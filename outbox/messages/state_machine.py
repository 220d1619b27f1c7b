"""The state machine of a message (docs/semantics.md): one table, and one function that reads it.

Publication is the only step without a resolution: COMMITTED becomes PUBLISHED when Kafka has
acknowledged the relay's transaction. Pure: no I/O, no clock.
"""

from __future__ import annotations

from typing import Final

from outbox.messages.message import Resolution, State

NEXT: Final[dict[tuple[State, Resolution], State]] = {
    (State.PREPARED, Resolution.COMMIT): State.COMMITTED,
    (State.PREPARED, Resolution.ROLLBACK): State.ROLLED_BACK,
    (State.PARKED, Resolution.COMMIT): State.COMMITTED,
    (State.PARKED, Resolution.ROLLBACK): State.ROLLED_BACK,
}
"""The only changes by a resolution; every other pair keeps the state."""

UNDECIDED: Final = frozenset({State.PREPARED, State.PARKED})

DECISION_OF: Final[dict[State, Resolution]] = {
    State.COMMITTED: Resolution.COMMIT,
    State.PUBLISHED: Resolution.COMMIT,
    State.ROLLED_BACK: Resolution.ROLLBACK,
}
"""The decision of each decided state."""


def end(state: State, resolution: Resolution) -> State:
    """Return the state after an end, a verdict or an operator's decision in ``state``."""
    return NEXT.get((state, resolution), state)


def contradicts(state: State, resolution: Resolution) -> bool:
    """Return whether a resolution is the opposite of the valid decision (409, P22)."""
    decision = DECISION_OF.get(state)
    return decision is not None and resolution not in (decision, Resolution.UNKNOWN)


def derive(
    *, decision: Resolution | None, parked: bool, published: bool, held: bool = False
) -> State:
    """Derive a message's state from the tables.

    A decision has priority over parking: an end that arrives while a half is being parked wins. A
    held record is COMMITTED although the relay's position is after it.
    """
    if decision is Resolution.COMMIT:
        return State.PUBLISHED if published and not held else State.COMMITTED
    if decision is Resolution.ROLLBACK:
        return State.ROLLED_BACK
    return State.PARKED if parked else State.PREPARED
