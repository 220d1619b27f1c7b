"""Sets the gauges that show the tables: unfinished messages, heartbeats, failing checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from outbox.messages.message import State
from outbox.telemetry.metrics import Metrics

Rows = Sequence[Mapping[str, Any]]

FROM_TABLES: Final = (
    "half_messages",
    "half_oldest_age_seconds",
    "half_messages_capped",
    "parked_messages",
    "held_messages",
    "plain_backlog_messages",
    "plain_oldest_age_seconds",
    "publish_backlog_messages",
    "check_interval_seconds",
    "check_failing_seconds",
    "group_paused",
    "checker_heartbeat_timestamp_seconds",
    "table_gauges_unread",
)
HELD: Final = "HELD"
"""COMMITTED, and refused by Kafka."""
PLAIN: Final = "PLAIN"
"""Published in SQL mode and not yet admitted: not a state of a half message."""


def clear_table_gauges(metrics: Metrics) -> None:
    """Remove every value: what is not found again is gone, or cannot be read."""
    for name in FROM_TABLES:
        metrics[name].clear()


def set_table_gauges(
    found: Mapping[str, Rows], errors: Mapping[str, str | None], metrics: Metrics
) -> None:
    """Set the gauges to the rows that were found of each part."""
    for part, error in errors.items():
        metrics["table_gauges_unread"].labels(part).set(error is not None)
    _set_unfinished(found["unfinished"], metrics)
    for beat in found["heartbeats"]:
        metrics["checker_heartbeat_timestamp_seconds"].labels(beat["task"]).set(beat["beaten_at"])
    for each in found["failing"]:
        metrics["check_failing_seconds"].labels(each["producer_group"]).set(each["seconds"])
    for each in found["paused"]:
        metrics["group_paused"].labels(each["producer_group"]).set(1)


def _set_unfinished(counts: Rows, metrics: Metrics) -> None:
    """Set the sums of each group and topic.

    A gauge is never increased: with several workers a cleared one goes on at its old value.
    """
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for count in sorted(counts, key=lambda each: each["oldest_age_seconds"]):
        group, age = count["producer_group"], count["oldest_age_seconds"]
        found["check_interval_seconds", group] = count["check_interval_seconds"]
        if count["state"] == PLAIN:
            found["plain_backlog_messages", group] += count["messages"]
            found["plain_oldest_age_seconds", group] = age
            continue
        state = State.COMMITTED if count["state"] == HELD else count["state"]
        found["half_messages", state, group] += count["messages"]
        capped = ("half_messages_capped", state, group)
        found[capped] = max(found[capped], count["capped"])
        found["half_oldest_age_seconds", state, group] = age
        if count["state"] == HELD:
            found["held_messages", group, count["topic"]] = count["messages"]
        if state == State.COMMITTED:
            found["publish_backlog_messages", count["topic"]] += count["messages"]
        if state == State.PARKED:
            found["parked_messages", group] += count["messages"]
    for (name, *labels), value in found.items():
        metrics[name].labels(*labels).set(value)
