"""A debug line for each message that was stored or decided, and none where nobody reads them."""

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
    """A directory of one group."""

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Name it."""
        return dict.fromkeys(ids, GROUP.name)


def told(*, replayed: bool = False, already_ended: bool = False) -> list[Any]:
    """Return the lines of one prepare and one end."""
    half = HalfMessage(
        half_id=HalfId(1 << 35),
        nonce=Nonce(7),
        prepared_at=NOW,
        content_digest=0,
        message=make_message(GROUP),
    )
    op = OpMessage(decision=Resolution.COMMIT, decided_by=DecidedBy.PRODUCER, decided_at=NOW)
    standing = MessageStatus(
        half_id=half.half_id,
        nonce=half.nonce,
        producer_group_id=GROUP.id,
        state=State.COMMITTED,
        op=op,
        prepared_at=NOW,
    )
    with capture_logs() as lines:
        tally = IngestMetrics(Metrics(), cast(NameCache, OneGroup()))
        tally.prepared([Prepared(half=half, replayed=replayed)])
        asyncio.run(tally.ended([Ended(standing=standing, already_ended=already_ended)]))
    return lines


def test_a_message_that_was_stored_and_decided_has_a_line_for_each() -> None:
    prepared, ended = told()
    assert prepared["event"] == "half_prepared"
    assert (ended["event"], ended["decision"], ended["decided_by"]) == (
        "half_ended",
        "COMMIT",
        "producer",
    )
    assert {prepared["producer_group"], ended["producer_group"]} == {"account"}
    assert prepared["message_id"] == ended["message_id"]
    assert {prepared["log_level"], ended["log_level"]} == {"debug"}


def test_what_changed_nothing_has_no_line() -> None:
    assert told(replayed=True, already_ended=True) == []


@pytest.mark.parametrize(("level", "written"), [("debug", True), ("info", False)])
def test_nothing_is_told_where_debug_lines_are_not_written(level: str, written: bool) -> None:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))
    try:
        assert (debug_logger() is not None) is written
    finally:
        structlog.configure(**before)
