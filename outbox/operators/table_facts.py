"""What the gauges show of the tables: unfinished messages, heartbeats, rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(slots=True, kw_only=True)
class GaugeFacts:
    """What one reading found: the rows of each part, by the names of the statement's columns.

    Of the unfinished messages, two states are not those of a half message: ``HELD`` is COMMITTED
    and refused by Kafka, ``PLAIN`` counts rows that will become one (SQL mode).
    """

    unfinished: Rows = ()
    heartbeats: Rows = ()
    failing: Rows = ()
    paused: Rows = ()
    tables: Rows = ()
    unread: dict[str, str | None] = field(default_factory=dict)
    """Each part, and the error if it could not be read; the others are whole."""
