"""What the gauges show of the tables: unfinished messages, heartbeats, rows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """How many messages of a group and topic are in a state, and the age of the oldest in seconds.

    ``capped``: there are more than were counted.

    Two are not states of a half message: ``HELD`` is COMMITTED and refused by Kafka, ``PLAIN``
    counts rows that will become one (SQL mode).
    """

    state: str
    producer_group: str
    topic: str
    messages: int
    capped: bool
    oldest_age_seconds: float
    check_interval_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The time of a task's last heartbeat, in seconds since 1970."""

    chore: str
    beaten_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A group with waiting halves, and for how many seconds all its checks have failed."""

    producer_group: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """PostgreSQL's estimate of a table's rows, and its last vacuum in seconds since 1970."""

    table: str
    live_rows: float
    vacuumed_at: float | None


@dataclass(slots=True, kw_only=True)
class GaugeFacts:
    """What one reading found, part by part."""

    unfinished: list[Unfinished] = field(default_factory=list)
    heartbeats: list[Heartbeat] = field(default_factory=list)
    failing: list[Failing] = field(default_factory=list)
    tables: list[TableFacts] = field(default_factory=list)
    unread: dict[str, str | None] = field(default_factory=dict)
    """Each part, and the error if it could not be read; the others are whole."""
