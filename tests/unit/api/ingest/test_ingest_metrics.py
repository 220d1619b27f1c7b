"""A debug line for each stored or decided message, and none without the debug level."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import structlog
from structlog.testing import capture_logs

from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from outbox.messages.message import (
    DecidedBy,
    Ended,
    HalfMessage,
    MessageStatus,
    OpMessage,
    Prepared,
    Resolution,
    State,
)
from outbox.messages.message_id import HalfId, Nonce
from outbox.telemetry.events import debug_logger
from outbox.telemetry.metrics import Metrics
from tests.fixtures_messages import make_group, make_message

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = make_group("account")


class OneGroup:
    """A name cache with one group."""

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return its name."""
        return dict.fromkeys(ids, GROUP.name)


def log_lines(*, replayed: bool = False, already_ended: bool = False) -> list[Any]:
    """Return the log lines of one prepare and one end."""
    half = HalfMessage(
        half_id=HalfId(1 << 35),
        nonce=Nonce(7),
        prepared_at=NOW,
        content_digest=0,
        message=make_message(GROUP),
    )
    op = OpMessage(decision=Resolution.COMMIT, decided_by=DecidedBy.PRODUCER, decided_at=NOW)
    status = MessageStatus(
        half_id=half.half_id,
        nonce=half.nonce,
        producer_group_id=GROUP.id,
        state=State.COMMITTED,
        op=op,
        prepared_at=NOW,
    )
    with capture_logs() as lines:
        metrics = IngestMetrics(Metrics(), cast(NameCache, OneGroup()))
        metrics.prepared([Prepared(half=half, replayed=replayed)])
        asyncio.run(metrics.ended([Ended(status=status, already_ended=already_ended)]))
    return lines


def test_a_stored_and_decided_message_has_one_line_for_each_step() -> None:
    prepared, ended = log_lines()
    assert prepared["event"] == "half_prepared"
    assert (ended["event"], ended["decision"], ended["decided_by"]) == (
        "half_ended",
        "COMMIT",
        "producer",
    )
    assert {prepared["producer_group"], ended["producer_group"]} == {"account"}
    assert prepared["message_id"] == ended["message_id"]
    assert {prepared["log_level"], ended["log_level"]} == {"debug"}


def test_replays_and_repeated_ends_have_no_line() -> None:
    assert log_lines(replayed=True, already_ended=True) == []


@pytest.mark.parametrize(("level", "written"), [("debug", True), ("info", False)])
def test_there_is_no_debug_logger_without_the_debug_level(level: str, written: bool) -> None:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))
    try:
        assert (debug_logger() is not None) is written
    finally:
        structlog.configure(**before)
