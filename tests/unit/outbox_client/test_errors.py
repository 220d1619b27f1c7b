"""Every error of the client can cross a process: one that cannot stops a pool of processes."""

import pickle
from datetime import UTC, datetime

import pytest

from outbox_client import (
    AlreadyEnded,
    BadAnswer,
    DatabaseUnsupported,
    OutboxError,
    PrepareFailed,
    ServiceUnreachable,
    TransactionFenced,
)
from outbox_client.errors import Overloaded, Problem

BUSY = Overloaded(Problem(status=503, code="overloaded", detail="try later", retryable=True))
BUSY.retry_after_seconds = 3.0
DECIDED = AlreadyEnded(
    Problem(
        status=409,
        code="already-ended",
        members={
            "winning_decision": "COMMIT",
            "decided_at": str(datetime(2026, 9, 21, tzinfo=UTC)),
        },
    )
)
ERRORS = (
    *(BUSY, DECIDED, PrepareFailed("invoice-7", BUSY), TransactionFenced("m-1")),
    *(ServiceUnreachable("too late"), BadAnswer("a page"), DatabaseUnsupported("not on Oracle")),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_crosses_a_process(error: OutboxError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert (copy.retryable, copy.retry_after_seconds) == (
        error.retryable,
        error.retry_after_seconds,
    )


def test_a_failed_prepare_has_the_delay_that_the_service_asks_for() -> None:
    failed = PrepareFailed("invoice-7", BUSY)
    assert (failed.retryable, failed.retry_after_seconds) == (True, 3.0)
    assert str(failed) == "transaction invoice-7 was not prepared: 503 overloaded: try later"
