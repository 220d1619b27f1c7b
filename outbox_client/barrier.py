"""The barrier: one row that makes a late local commit fail once a check was answered ROLLBACK.

The local transaction inserts ``committed`` for its message; the check inserts ``fenced`` for the
same primary key. Only one of the two can ever commit, so the stored row is the answer. A missing
``committed`` row is then proof, not a guess. The adapters contain the SQL.
"""

from datetime import datetime, timedelta
from typing import Final

from outbox_client.message import LocalTransactionState

TABLE: Final = "outbox_barrier"
COMMITTED: Final = "committed"
FENCED: Final = "fenced"
LOCK_TIMEOUT: Final = timedelta(seconds=2)
PURGE_AT_LEAST: Final = timedelta(days=7)
CLOCK_MARGIN: Final = timedelta(hours=1)

PURGE_GROUP: Final = ""
PURGE_MARK: Final = "purged-before"


def answer(
    outcome: str | None, prepared_at: datetime, purged_before: datetime | None
) -> LocalTransactionState:
    """Return the answer for the stored row.

    A fence proves nothing if a purge may have deleted ``committed``: the answer is UNKNOWN. It was
    recorded after its prepare. The two times come from two databases, so their clocks may differ by
    an hour.
    """
    if outcome == COMMITTED:
        return LocalTransactionState.COMMIT
    if outcome != FENCED:
        return LocalTransactionState.UNKNOWN
    if purged_before is not None and prepared_at < purged_before + CLOCK_MARGIN:
        return LocalTransactionState.UNKNOWN
    return LocalTransactionState.ROLLBACK


def purge_age(older_than: timedelta) -> timedelta:
    """Return ``older_than``; raises ValueError below 7 days, for what may still come."""
    if older_than < PURGE_AT_LEAST:
        raise ValueError(f"rows are kept at least {PURGE_AT_LEAST.days} days")
    return older_than


def milliseconds(duration: timedelta) -> int:
    """Return a lock timeout in whole milliseconds; raises ValueError unless it is positive.

    Zero means "wait for ever" to PostgreSQL, so it is refused.
    """
    whole = duration // timedelta(milliseconds=1)
    if whole < 1:
        raise ValueError("the lock timeout must be at least one millisecond")
    return whole
