"""The interface of a producer: run a local transaction, and later answer checks about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from outbox_client.message import LocalTransactionState, PreparedMessage

LONGEST_RETRY_SECONDS: Final = 3600
"""The service accepts no longer delay (docs/schemas/check-answer.schema.json)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The service's question: did the local transaction of this message commit?

    ``reply_by`` and ``prepared_at`` are on the service's clock. ``key`` and ``value`` are text, or
    bytes if the service sent them as base64; ``value`` is set only if the group asks for it
    (``has_value``), because None is a tombstone.
    """

    message_id: str
    transaction_id: str | None
    producer_group: str
    topic: str
    key: bytes | str | None
    headers: Mapping[str, str | bytes | None]
    attempt: int
    max_attempts: int
    prepared_at: datetime
    reply_by: datetime
    value: bytes | str | None = None
    has_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """UNKNOWN, with no further check before ``retry_after_seconds`` (an integer, 0 to 3600).

    Use it for a local transaction that will take a known time. ``reason`` is for people. Raises
    ValueError for any other delay.
    """

    retry_after_seconds: int
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.retry_after_seconds not in range(LONGEST_RETRY_SECONDS + 1):
            raise ValueError("retry_after_seconds is a whole number from 0 to 3600")


class CheckListener(Protocol):
    """Answers check-backs."""

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState | Unknown | None:
        """Return the result of the local transaction.

        If nothing is found, return UNKNOWN, never ROLLBACK, unless a late local commit has been
        made impossible first (the barrier does that). None and exceptions mean UNKNOWN;
        ``Unknown`` also sets the time of the next check.
        """
        ...


class TransactionListener(CheckListener, Protocol):
    """Runs local transactions and answers check-backs: the two tasks of a producer."""

    def execute_local_transaction(
        self, message: PreparedMessage, /
    ) -> LocalTransactionState | None:
        """Run the local transaction of a prepared message; None means UNKNOWN."""
        ...


class AsyncCheckListener(Protocol):
    """Answers check-backs on an event loop."""

    async def check_local_transaction(
        self, check: Check, /
    ) -> LocalTransactionState | Unknown | None:
        """Return the result of the local transaction, as ``CheckListener``."""
        ...


class AsyncTransactionListener(AsyncCheckListener, Protocol):
    """Runs local transactions and answers check-backs on an event loop."""

    async def execute_local_transaction(
        self, message: PreparedMessage, /
    ) -> LocalTransactionState | None:
        """Run the local transaction of a prepared message; None means UNKNOWN."""
        ...
