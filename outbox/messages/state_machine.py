"""The state machine of a message (semantics 3.1): one table, and one function that reads it.

Publication is the only step that no resolution causes: COMMITTED becomes PUBLISHED when Kafka has
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
"""The only moves a resolution makes; every other pair leaves the state as it is."""

UNDECIDED: Final = frozenset({State.PREPARED, State.PARKED})

DECISION_OF: Final[dict[State, Resolution]] = {
    State.COMMITTED: Resolution.COMMIT,
    State.PUBLISHED: Resolution.COMMIT,
    State.ROLLED_BACK: Resolution.ROLLBACK,
}
"""The decision that a decided state stands for."""


def end(state: State, resolution: Resolution) -> State:
    """Return the state after an end, a verdict or an operator's decision in ``state``."""
    return NEXT.get((state, resolution), state)


def contradicts(state: State, resolution: Resolution) -> bool:
    """Tell whether a resolution is the opposite of the standing decision (409, P22)."""
    standing = DECISION_OF.get(state)
    return standing is not None and resolution not in (standing, Resolution.UNKNOWN)


def derive(
    *, decision: Resolution | None, parked: bool, published: bool, held: bool = False
) -> State:
    """Derive a message's state from what the tables hold.

    A decision outweighs parking, because an end that arrives while a half is being parked wins.
    A held record is COMMITTED although the relay's position has passed it.
    """
    if decision is Resolution.COMMIT:
        return State.PUBLISHED if published and not held else State.COMMITTED
    if decision is Resolution.ROLLBACK:
        return State.ROLLED_BACK
    return State.PARKED if parked else State.PREPARED
