"""Rows of the sample whose records are read again."""

from __future__ import annotations

from typing import Any

from outbox.messages.message import HalfMessage
from outbox.messages.record import digest_of
from outbox.reconciliation.snapshot import KnownHalf, RecordedPlace
from spark.checks.sample import SampledMessage
from tests.fixtures_messages import make_message
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_suspects import HALF

HOME, AWAY = 3, 4


def row(partition: int, offset: int = 5) -> dict[str, Any]:
    """Return a record of the sample."""
    return {"topic": "points", "partition": partition, "offset": offset, "shard": 3} | {
        "key_hash": 9,
        "batch_no": 2,
        "position": (7, 1),
        "decided_at": None,
        "record_time": None,
    }


def sampled(
    *rows: dict[str, Any],
    asked: int | None = None,
    recorded: RecordedPlace | None = None,
    half: HalfMessage = HALF,
) -> SampledMessage:
    """Return a message of the sample."""
    message = make_message(topic="points", key=b"member-1", partition=asked)
    digest = digest_of(half.half_id, half.nonce, message)
    half = replace(half, message=message, content_digest=digest)
    return SampledMessage(rows=rows, known=KnownHalf(half=half, parked=False), recorded=recorded)
