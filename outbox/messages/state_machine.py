"""The state of a message (docs/semantics.md), derived from what is stored.

A decision is never changed, so only an undecided message has a next state. Pure: no I/O, no clock.
"""

from __future__ import annotations

from outbox.messages.message import Resolution, State


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
