"""A producer group read from its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from outbox.checks.breaker import BreakerState
from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup

_COPIED: Final = (
    "id",
    "name",
    "check_url",
    "check_interval_seconds",
    "check_max",
    "check_timeout_seconds",
    "transaction_timeout_seconds",
    "max_inflight",
    "batch_check",
    "check_payload",
    "max_age_seconds",
    "paused",
    "pause_reason",
    "version",
    "created_at",
    "updated_at",
)


def read_group(row: Mapping[str, Any], secrets: tuple[str, ...]) -> ProducerGroup:
    """Build a producer group from its row; its secrets are passed decrypted."""
    return ProducerGroup(
        **{name: row[name] for name in _COPIED},
        on_check_max=OnCheckMax(row["on_check_max"]),
        backoff=Backoff(row["backoff"]),
        topics=tuple(row["topics"]),
        breaker=BreakerState(row.get("breaker", BreakerState.CLOSED)),
        secrets=secrets,
    )
