"""What does not move on, as the tables show it: halves without an end, silent checks, transactions.

Plain values: facts of one snapshot, not conclusions. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from outbox.messages.message_id import HalfId


class ParkedGroup(NamedTuple):
    """How many half messages of a group are parked, since when, and why."""

    producer_group: str
    halves: int
    oldest_parked_at: datetime
    reasons: Mapping[str, int]


class StalledHalf(NamedTuple):
    """A half message that should have been parked or ended two intervals ago."""

    half_id: HalfId
    nonce: int
    producer_group: str
    topic: str
    reason: str
    """`check_max` or `max_age`: what demanded an end."""
    check_count: int
    due_at: datetime
    """When the end was due."""
    last_outcome: str | None


class SilentGroup(NamedTuple):
    """A group whose halves are due and about which nobody asks."""

    producer_group: str
    due_since: datetime
    positions: Mapping[str, int]
    """How far each of its delay classes has been read."""
    last_heartbeat_at: datetime | None
    """The last sign of life of the checker's check-back."""


class StalledTransaction(NamedTuple):
    """The transaction that the snapshot's xmin belongs to, and that has been open for long."""

    pid: int
    application: str
    state: str | None
    begun_at: datetime
    query_start: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """All of it, as of one snapshot."""

    parked: tuple[ParkedGroup, ...] = ()
    halves: tuple[StalledHalf, ...] = ()
    silent: tuple[SilentGroup, ...] = ()
    transactions: tuple[StalledTransaction, ...] = ()
