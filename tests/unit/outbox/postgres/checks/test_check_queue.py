"""The order of due rows; the queue itself is tested in tests/integration/postgres/checks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from outbox.postgres.checks.check_queue import in_due_order

START = datetime(2026, 1, 1, tzinfo=UTC)


def row(number: int, delay_seconds: int, due_after: int) -> dict[str, Any]:
    return {
        "id": number,
        "delay_seconds": delay_seconds,
        "due_at": START + timedelta(seconds=due_after),
    }


def test_classes_are_merged_by_due_time() -> None:
    rows = [row(1, 0, 3), row(2, 0, 5), row(3, 30, 1), row(4, 30, 4)]
    assert [each["id"] for each in in_due_order(rows)] == [3, 1, 4, 2]


def test_a_row_of_a_class_never_comes_before_a_row_of_a_lower_id() -> None:
    rows = [row(1, 0, 5), row(2, 0, 4), row(3, 30, 4)]
    assert [each["id"] for each in in_due_order(rows)] == [3, 1, 2]
