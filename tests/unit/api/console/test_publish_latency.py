"""The latency of the newest published messages, from the answer of the API."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from api.console.publish_latency import PublishLatency, publish_latency

DECIDED_AT = datetime.fromisoformat("2026-09-21T14:13:26+00:00")


def published(milliseconds: int, after_seconds: int = 0) -> dict[str, Any]:
    """Return a message that took so long."""
    decided_at = DECIDED_AT + timedelta(seconds=after_seconds)
    came_at = decided_at + timedelta(milliseconds=milliseconds)
    return {
        "decided_at": decided_at.isoformat(),
        "publication": {"published_at": came_at.isoformat()},
    }


def test_without_a_published_message_there_is_no_latency() -> None:
    assert publish_latency([]) is None


def test_the_latency_of_one_message_is_all_there_is() -> None:
    assert publish_latency([published(7)]) == PublishLatency(
        messages=1, median=7, most=7, longest=7, newest=published(7)["publication"]["published_at"]
    )


def test_one_slow_message_of_twenty_is_the_longest_alone() -> None:
    latency = publish_latency([published(n, after_seconds=60 - n) for n in (*range(1, 20), 900)])
    assert latency is not None
    assert (latency.median, latency.most, latency.longest) == (10, 19, 900)
    assert latency.newest == "2026-09-21T14:14:25.001000+00:00"


def test_a_clock_that_runs_behind_makes_no_negative_latency() -> None:
    latency = publish_latency([published(-5)])
    assert latency is not None
    assert latency.longest == 0


def test_a_message_whose_place_is_not_stored_is_left_out() -> None:
    assert publish_latency([{**published(5), "publication": None}]) is None
    assert publish_latency([{**published(5), "publication": None}, published(7)]) == (
        publish_latency([published(7)])
    )
