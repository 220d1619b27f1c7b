"""What a producer must be able to do: run its local transaction, and say later how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from outbox_client.message import LocalTransactionState, PreparedMessage

LONGEST_RETRY_SECONDS: Final = 3600
"""The service takes no longer wish (docs/schemas/check-answer.schema.json)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The service's question: what became of the local transaction of this message?

    ``reply_by`` and ``prepared_at`` are on the service's clock. ``key`` and ``value`` are text, or
    bytes if the service sent them as base64; ``value`` is there only if the group asks for it
    (``has_value``), since None is a tombstone.
    """

    message_id: str
    transaction_id: str | None
    producer_group: str
    topic: str
    key: bytes | str | None
    headers: Mapping[str, str]
    attempt: int
    max_attempts: int
    prepared_at: datetime
    reply_by: datetime
    value: bytes | str | None = None
    has_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """UNKNOWN, and ask again no sooner than in ``retry_after_seconds`` (whole, 0 to 3600).

    For a local transaction whose end is known to be some way off. ``reason`` is for people. Raises
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
        """Say what became of the local transaction.

        Finding nothing is UNKNOWN, never ROLLBACK, unless a late local commit has been made
        impossible first (the barrier does that). None and exceptions mean UNKNOWN; ``Unknown``
        says besides when to ask again.
        """
        ...


class TransactionListener(CheckListener, Protocol):
    """Runs local transactions and answers check-backs: the two halves of a producer."""

    def execute_local_transaction(
        self, message: PreparedMessage, /
    ) -> LocalTransactionState | None:
        """Run the local transaction of a prepared message; None means UNKNOWN."""
        ...
