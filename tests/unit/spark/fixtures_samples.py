"""Rows of the sample whose records are read again."""

from __future__ import annotations

from typing import Any

from outbox.reconciliation.snapshot import KnownHalf
from spark.checks.sample import SampledMessage
from spark.columns.murmur2 import partition_of
from tests.fixtures_messages import make_message
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_suspects import HALF

KEY = b"member-1"
HOME = partition_of(KEY, 8)
AWAY = (HOME + 1) % 8


def row(partition: int, offset: int = 5, *, all_known: bool = True) -> dict[str, Any]:
    """Return a record of the sample; its relay knew all eight partitions, by default."""
    return {"topic": "points", "partition": partition, "offset": offset, "shard": 3} | {
        "key_hash": 9,
        "batch_no": 2,
        "all_known": all_known,
        "xid": 7,
        "n": 1,
        "committed_at": None,
        "published_at": None,
    }


def sampled(*rows: dict[str, Any], key: bytes | None = KEY, **fields: Any) -> SampledMessage:
    """Return a message of the sample."""
    message = make_message(topic="points", key=key, partition=fields.pop("asked", None))
    half = replace(HALF, message=message)
    defaults: dict[str, Any] = {"recorded": None, "partitions": 8}
    return SampledMessage(
        rows=rows, known=KnownHalf(half=half, parked=False), **{**defaults, **fields}
    )
