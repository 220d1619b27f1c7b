"""The stored row is the answer; a fence proves nothing if a purge may have deleted a row."""

from datetime import UTC, datetime, timedelta

import pytest

from outbox_client import LocalTransactionState, barrier

COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK
UNKNOWN = LocalTransactionState.UNKNOWN
PREPARED_AT = datetime(2026, 9, 21, 14, 13, 26, tzinfo=UTC)
LONG_BEFORE = PREPARED_AT - timedelta(days=1)
AFTER = PREPARED_AT + timedelta(days=1)


@pytest.mark.parametrize(
    ("outcome", "purged_before", "answer"),
    [
        ("committed", None, COMMIT),
        ("committed", AFTER, COMMIT),
        ("fenced", None, ROLLBACK),
        ("fenced", LONG_BEFORE, ROLLBACK),
        ("fenced", AFTER, UNKNOWN),
        ("fenced", PREPARED_AT - timedelta(minutes=59), UNKNOWN),
        (None, None, UNKNOWN),
        ("surprise", None, UNKNOWN),
    ],
)
def test_the_stored_row_is_the_answer(
    outcome: str | None, purged_before: datetime | None, answer: LocalTransactionState
) -> None:
    assert barrier.answer(outcome, PREPARED_AT, purged_before) == answer


@pytest.mark.parametrize("duration", [timedelta(0), timedelta(microseconds=999), timedelta(-1)])
def test_a_lock_timeout_of_zero_means_no_limit_and_is_refused(duration: timedelta) -> None:
    with pytest.raises(ValueError, match="millisecond"):
        barrier.milliseconds(duration)
