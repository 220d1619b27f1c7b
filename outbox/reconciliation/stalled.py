"""What makes no progress according to the tables: undecided halves, silent checks, transactions.

The values are facts of one snapshot, not conclusions. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from outbox.messages.message_id import HalfId


class ParkedGroup(NamedTuple):
    """The parked half messages of a group: how many, since when, and why."""

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
    """`check_max` or `max_age`: the limit that required an end."""
    check_count: int
    due_at: datetime
    """When the end was due."""
    last_outcome: str | None


class SilentGroup(NamedTuple):
    """A group whose halves are due, but whose check endpoint is not called."""

    producer_group: str
    due_since: datetime
    positions: Mapping[str, int]
    """The position up to which each of its delay classes has been read."""
    last_heartbeat_at: datetime | None
    """The last heartbeat of the checker's check-back."""


class StalledTransaction(NamedTuple):
    """The transaction that the snapshot's xmin belongs to, if it has been open for long."""

    pid: int
    application: str
    state: str | None
    begun_at: datetime
    query_start: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """Everything that makes no progress in one snapshot."""

    parked: tuple[ParkedGroup, ...] = ()
    halves: tuple[StalledHalf, ...] = ()
    silent: tuple[SilentGroup, ...] = ()
    transactions: tuple[StalledTransaction, ...] = ()
