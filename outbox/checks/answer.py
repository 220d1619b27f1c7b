"""The answer to one check.

A check is a question to the producer group; only an explicit, valid verdict decides (G7). Whether
an answer spends one of ``check_max`` depends only on the answer. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from outbox.messages.message import Resolution

GONE: Final = 410
"""The endpoint is permanently gone: its group is paused, nothing is rolled back."""
NOT_SPENT_STATUSES: Final = frozenset({GONE, 429, 502, 503, 504})
"""Overload, an answer of a gateway, or a gone endpoint: not an answer about the message."""


class Outcome(StrEnum):
    """The result of a check, as metrics and the history name it."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"
    BAD_VERDICT = "bad_verdict"
    HTTP_ERROR = "http_error"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"


ANSWERED: Final = frozenset({Outcome.COMMIT, Outcome.ROLLBACK, Outcome.UNKNOWN})
"""The outcomes of checks whose answer was valid."""
VERDICT_OF: Final = {Outcome.COMMIT: Resolution.COMMIT, Outcome.ROLLBACK: Resolution.ROLLBACK}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """The answer to one check; ``error`` is an error class, never a text of the endpoint."""

    outcome: Outcome
    http_status: int | None = None
    retry_after_seconds: int | None = None
    reason: str | None = None
    error: str | None = None
    call: int = 0
    """The call of the round that returned it: a batch is one call."""
    asked_at: datetime | None = None
    latency_ms: int = 0

    @property
    def verdict(self) -> Resolution | None:
        """The decision that the answer contains, if any."""
        return VERDICT_OF.get(self.outcome)

    @property
    def valid(self) -> bool:
        """Whether it is what the contract asks for: COMMIT, ROLLBACK or UNKNOWN."""
        return self.outcome in ANSWERED

    @property
    def spent(self) -> bool:
        """Whether it counts toward ``check_max``: an answer without a decision."""
        if self.outcome is Outcome.HTTP_ERROR:
            return self.http_status not in NOT_SPENT_STATUSES
        return self.outcome in (Outcome.UNKNOWN, Outcome.BAD_VERDICT)

    @property
    def reached_endpoint(self) -> bool:
        """Whether the call got past the guard: a blocked call shows nothing about the endpoint."""
        return self.outcome is not Outcome.BLOCKED

    @property
    def feeds_breaker(self) -> bool:
        """Whether the endpoint failed: silence, no connection, or a 5xx."""
        if self.outcome is Outcome.HTTP_ERROR:
            return (self.http_status or 0) >= 500
        return self.outcome in (Outcome.TIMEOUT, Outcome.UNREACHABLE)

    @property
    def gone(self) -> bool:
        """Whether the endpoint answered 410."""
        return self.http_status == GONE
