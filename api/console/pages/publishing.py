"""Publishing: what is committed and not yet in Kafka, and what holds it up."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from api.console.in_process_api import Query, Refused
from api.console.metric_values import MetricValues
from api.console.pages.overview import metric_values
from api.console.visit import Visit
from outbox.access import Scope
from outbox.operators.held_records import COUNTED

SHOWN: Final = 100
HELD: Final = "/v1/held-records"
ACTIONS: Final = ("release", "drop")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """What is known of a topic; ``errors`` are what Kafka refuses, and how many records."""

    topic: str
    backlog: int
    errors: list[tuple[str, int]]


async def show(visit: Visit) -> Response:
    """Show the backlog by topic, halted shards, partitions, and what Kafka refuses."""
    # All at once: each waits for another store, or for another statement.
    values, shards, partitions, held = await asyncio.gather(
        metric_values(visit),
        _shards(visit),
        _partitions(visit),
        _held(visit),
    )
    causes = _causes(held["data"])
    return visit.page(
        "publishing.html",
        topics=_topics(values, causes),
        held=held,
        most_counted=COUNTED,
        following=held["next_cursor"] and visit.address("/publishing", cursor=held["next_cursor"]),
        causes=causes,
        at_least="at least " if held["has_more"] or "cursor" in visit.query else "",
        shards=shards,
        partitions=partitions,
        sees_all=_sees_all(visit),
        not_forced=visit.why_not(Scope.OPS_FORCE),
        bound=visit.caller.groups is not None,
    )


async def settle(visit: Visit) -> Response:
    """Publish a held record again, or give it up."""
    message_id, action = visit.request.path_params["message_id"], visit.form.get("action", "")
    if action not in ACTIONS:
        raise Refused(422, {"title": "The action is not valid", "detail": "choose one of the two"})
    body = {"operator": visit.form.get("operator", ""), "reason": visit.form.get("reason", "")}
    await visit.api.post(f"{HELD}/{message_id}/{action}", body)
    return visit.see("/publishing", done="released" if action == "release" else "dropped")


def _sees_all(visit: Visit) -> bool:
    """Return whether the visitor sees what all groups share."""
    return visit.caller.groups is None and visit.can(Scope.REPORTS_READ)


async def _shards(visit: Visit) -> list[dict[str, Any]]:
    if not _sees_all(visit):
        return []
    found: list[dict[str, Any]] = (await visit.api.get("/v1/shards"))["data"]
    return found


async def _partitions(visit: Visit) -> list[dict[str, Any]] | None:
    """Return the partitions; None while Kafka does not answer."""
    if not _sees_all(visit):
        return []
    try:
        found: list[dict[str, Any]] = (await visit.api.get("/v1/partitions"))["data"]
    except Refused as refused:
        if refused.status != 503:
            raise
        return None
    return found


async def _held(visit: Visit) -> dict[str, Any]:
    """Return the oldest held records, or the next page of them."""
    cursor = visit.query.get("cursor")
    query: Query = {"limit": SHOWN}
    found: dict[str, Any] = await visit.api.get(
        HELD, {**query, "cursor": cursor} if cursor else query
    )
    return found


def _topics(values: MetricValues, causes: list[tuple[str, str, int]]) -> list[TopicRow]:
    """Return each topic that waits or that Kafka refuses."""
    backlog = {
        each.labels["topic"]: int(each.value)
        for each in values.of("publish_backlog_messages")
        if each.value
    }
    errors: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for topic, error, count in causes:
        errors[topic].append((error, count))
    rows = [
        TopicRow(
            topic=topic,
            backlog=backlog.get(topic, 0),
            errors=errors[topic],
        )
        for topic in {*backlog, *errors}
    ]
    return sorted(rows, key=lambda each: (-each.backlog, not each.errors, each.topic))


def _causes(held: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Return topic, error and number of the records that are held, the most first."""
    counts: dict[tuple[str, str], int] = {}
    for each in held:
        cause = (each["topic"], each["publish_error"])
        counts[cause] = counts.get(cause, 0) + 1
    return sorted(((*cause, n) for cause, n in counts.items()), key=lambda each: -each[2])
