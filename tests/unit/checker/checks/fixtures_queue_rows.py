"""Due rows and slices with defaults for the fields that a test does not name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from outbox.checks.check_round import DueSlice, QueueRow
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId, Nonce
from tests.fixtures_messages import make_group, make_message

NOW = datetime(2026, 9, 21, 14, 14, 2, tzinfo=UTC)


def make_half(half_id: int = 1 << 15, **fields: Any) -> HalfMessage:
    """Return a stored half message."""
    return HalfMessage(
        half_id=HalfId(half_id),
        nonce=Nonce(7),
        message=make_message(**fields),
        prepared_at=NOW,
        content_digest=0,
    )


def make_row(look_id: int = 1, **fields: Any) -> QueueRow:
    """Return a due row."""
    half_id = fields.pop("half_id", look_id << 15)
    defaults: dict[str, Any] = {
        "delay_seconds": 30,
        "round": 1,
        "check_count": 0,
        "only_unknown": True,
        "age_from": NOW,
        "half": make_half(half_id),
    }
    return QueueRow(look_id=look_id, half_id=HalfId(half_id), **{**defaults, **fields})


def make_slice(
    *rows: QueueRow, group: ProducerGroup | None = None, now: datetime = NOW
) -> DueSlice:
    """Return the due rows of a group whose cursors are at 0."""
    return DueSlice(
        group=group or make_group(),
        now=now,
        cursors={row.delay_seconds: 0 for row in rows},
        rows=rows,
    )
