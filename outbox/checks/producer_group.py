"""A producer group: it answers the checks of its messages; its settings of checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from outbox.checks.breaker import BreakerState


class OnCheckMax(StrEnum):
    """The treatment of a half message whose checks are spent (P31)."""

    PARK = "park"
    ROLLBACK = "rollback"


class Backoff(StrEnum):
    """The growth of the interval between checks."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerGroup:
    """A producer group and the checks of its undecided messages; durations are in seconds."""

    id: int
    name: str
    check_url: str
    check_interval_seconds: int = 30
    check_max: int = 15
    check_timeout_seconds: int = 5
    transaction_timeout_seconds: int = 6
    on_check_max: OnCheckMax = OnCheckMax.PARK
    backoff: Backoff = Backoff.FIXED
    max_inflight: int = 8
    batch_check: bool = False
    check_payload: bool = False
    topics: tuple[str, ...] = ()
    max_age_seconds: int = 259_200
    paused: bool = False
    pause_reason: str | None = None
    breaker: BreakerState = BreakerState.CLOSED
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The valid signing secrets, newest first (whsec_…), decrypted; never printed."""
