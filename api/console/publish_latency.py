"""How long messages took from their decision to Kafka, as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.console.in_process_api import Query
from api.console.page_renderer import read_moment
from api.console.visit import Visit

LATENCY_OF: Final = 50
"""From so many of the newest published messages the latency is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishLatency:
    """Milliseconds from decision to acknowledgement, of so many messages."""

    messages: int
    median: int
    most: int
    """19 of 20 took at most so long."""
    longest: int
    newest: str
    """When the last of them came into Kafka, as RFC 3339."""


async def newest_published(visit: Visit) -> list[dict[str, Any]]:
    """Return the newest published messages."""
    query: Query = {"state": "PUBLISHED", "limit": LATENCY_OF}
    found: list[dict[str, Any]] = (await visit.api.get("/v1/half-messages", query))["data"]
    return found


def publish_latency(published: Sequence[Mapping[str, Any]]) -> PublishLatency | None:
    """Return the latency of published messages; None if there are none.

    Of messages whose place in Kafka is not stored any more the time is not known either.
    """
    placed = [each for each in published if each["publication"] is not None]
    took = sorted(_milliseconds(each) for each in placed)
    if not took:
        return None
    return PublishLatency(
        messages=len(took),
        median=took[(len(took) - 1) // 2],
        most=took[(len(took) * 19 + 19) // 20 - 1],
        longest=took[-1],
        newest=max(each["publication"]["published_at"] for each in placed),
    )


def _milliseconds(message: Mapping[str, Any]) -> int:
    since = read_moment(message["publication"]["published_at"]) - read_moment(message["decided_at"])
    return max(0, round(since.total_seconds() * 1000))
