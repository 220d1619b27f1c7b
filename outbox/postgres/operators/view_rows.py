"""Rows of the browser's statements as the values that readers see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from outbox.messages.message import MessageStatus, ParkedReason, State
from outbox.operators.message_view import HistoryEvent, LastCheck, MessageView
from outbox.postgres.messages.half_rows import read_half


def read_view(row: Mapping[str, Any], standing: MessageStatus) -> MessageView:
    """Build a message's view; its half comes without key, headers and value."""
    hidden = {"key": None, "value": None, "headers": None}
    is_parked = standing.state is State.PARKED
    return MessageView(
        half=read_half({**row, **hidden}),
        standing=standing,
        value_bytes=row["value_bytes"],
        next_check_at=_next_check_at(row) if standing.state is State.PREPARED else None,
        check_count=row["checks"],
        last_check=_last_check(row),
        parked_at=row["parked_at"] if is_parked else None,
        parked_reason=ParkedReason(row["parked_reason"]) if is_parked else None,
    )


def read_event(row: Mapping[str, Any]) -> HistoryEvent:
    """Build one event of a history."""
    return HistoryEvent(at=row["at"], type=row["type"], facts=row["facts"])


def _last_check(row: Mapping[str, Any]) -> LastCheck | None:
    if row["asked_at"] is None:
        return None
    return LastCheck(
        at=row["asked_at"],
        outcome=row["outcome"],
        http_status=row["http_status"],
        latency_ms=row["latency_ms"],
    )


def _next_check_at(row: Mapping[str, Any]) -> datetime:
    """Return the earliest time of the next check: immunity, or the interval after the last one.

    A back-off, a pause or an open breaker may make it later; the queue is not searched for it.
    """
    resumed: datetime | None = row["resumed_at"]
    if row["asked_at"] is not None and (resumed is None or row["asked_at"] >= resumed):
        after: datetime = row["asked_at"] + timedelta(seconds=row["check_interval_seconds"])
        return after
    if resumed is not None:
        return resumed
    first: datetime = row["prepared_at"] + timedelta(seconds=row["immunity_seconds"])
    return first
