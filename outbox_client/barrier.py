"""The barrier: one row that makes a late local commit fail once a check was answered ROLLBACK.

The local transaction inserts ``committed`` for its message; the check inserts ``fenced`` for the
same primary key. Only one of the two can ever commit, so whichever row stands is the answer, and
finding nothing becomes a fact instead of a guess (D27). The adapters hold the SQL.
"""

from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from outbox_client.listener import Check
from outbox_client.message import LocalTransactionState, PreparedMessage

TABLE: Final = "outbox_barrier"
COMMITTED: Final = "committed"
FENCED: Final = "fenced"
LOCK_TIMEOUT: Final = timedelta(seconds=2)
PURGE_AT_LEAST: Final = timedelta(days=7)
CLOCK_MARGIN: Final = timedelta(hours=1)

PURGE_GROUP: Final = ""
PURGE_MARK: Final = "purged-before"

Local = TypeVar("Local", contravariant=True)
Source = TypeVar("Source", contravariant=True)


class Barrier(Protocol[Local, Source]):
    """What both adapters offer: ``Local`` is a session in use, ``Source`` opens one of its own."""

    def record(self, db: Local, prepared: PreparedMessage, /) -> None:
        """Insert ``committed`` inside the local transaction; raises ``TransactionFenced``."""
        ...

    def check(self, db: Source, check: Check, /) -> LocalTransactionState:
        """Fence the message unless it is recorded, and say which of the two it is.

        UNKNOWN if a local transaction in flight holds the row longer than the lock timeout.
        """
        ...

    def create_table(self, db: Source, /) -> None:
        """Create the table if it is missing."""
        ...

    def purge(self, db: Source, older_than: timedelta, /) -> int:
        """Delete rows older than ``older_than`` (at least 7 days) and return how many."""
        ...


def answer(
    outcome: str | None, prepared_at: datetime, purged_before: datetime | None
) -> LocalTransactionState:
    """Turn the row that stands into an answer.

    A fence set where a purge may have taken ``committed`` away proves nothing: UNKNOWN. The two
    times come from two databases, so an hour is allowed between their clocks.
    """
    if outcome == COMMITTED:
        return LocalTransactionState.COMMIT
    if outcome != FENCED:
        return LocalTransactionState.UNKNOWN
    if purged_before is not None and prepared_at < purged_before + CLOCK_MARGIN:
        return LocalTransactionState.UNKNOWN
    return LocalTransactionState.ROLLBACK


def purge_age(older_than: timedelta) -> timedelta:
    """Return ``older_than``; raises ValueError below 7 days, while checks may still be asked."""
    if older_than < PURGE_AT_LEAST:
        raise ValueError(f"barrier rows are kept at least {PURGE_AT_LEAST.days} days")
    return older_than


def milliseconds(duration: timedelta) -> int:
    """Return a lock timeout in whole milliseconds; raises ValueError unless it is positive.

    Zero means "wait for ever" to PostgreSQL, so it is refused.
    """
    whole = duration // timedelta(milliseconds=1)
    if whole < 1:
        raise ValueError("the lock timeout must be at least one millisecond")
    return whole
