"""Sets the gauges that show the tables: unfinished messages, heartbeats, failing checks, rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from outbox.operators.table_facts import GaugeFacts, Unfinished
from outbox.telemetry.metrics import Metrics

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
    "checker_heartbeat_timestamp_seconds",
    "op_table_rows",
    "last_vacuum_timestamp_seconds",
    "table_gauges_unread",
)
PARKED: Final = "PARKED"
COMMITTED: Final = "COMMITTED"
HELD: Final = "HELD"
"""COMMITTED, and refused by Kafka."""
PLAIN: Final = "PLAIN"
"""Published in SQL mode and not yet admitted: not a state of a half message."""


def clear_table_gauges(metrics: Metrics) -> None:
    """Remove every value: what is not found again is gone, or cannot be read."""
    for name in FROM_TABLES:
        metrics[name].clear()


def set_table_gauges(facts: GaugeFacts, metrics: Metrics) -> None:
    """Set the gauges to what was found."""
    for part, error in facts.unread.items():
        metrics["table_gauges_unread"].labels(part).set(error is not None)
    _set_unfinished(facts.unfinished, metrics)
    for beat in facts.heartbeats:
        metrics["checker_heartbeat_timestamp_seconds"].labels(beat.chore).set(beat.beaten_at)
    for failing in facts.failing:
        metrics["check_failing_seconds"].labels(failing.producer_group).set(failing.seconds)
    for table in facts.tables:
        metrics["op_table_rows"].labels(table.table).set(table.live_rows)
        if table.vacuumed_at is not None:
            vacuumed = metrics["last_vacuum_timestamp_seconds"]
            vacuumed.labels(table.table).set(table.vacuumed_at)


def _set_unfinished(counts: Sequence[Unfinished], metrics: Metrics) -> None:
    messages: dict[tuple[str, str], int] = defaultdict(int)
    ages: dict[tuple[str, str], float] = defaultdict(float)
    capped: dict[tuple[str, str], bool] = defaultdict(bool)
    for count in counts:
        state = COMMITTED if count.state == HELD else count.state
        place = (state, count.producer_group)
        messages[place] += count.messages
        capped[place] |= count.capped
        ages[place] = max(ages[place], count.oldest_age_seconds)
        if count.state == HELD:
            held = metrics["held_messages"].labels(count.producer_group, count.topic)
            held.set(count.messages)
        if state == COMMITTED:
            metrics["publish_backlog_messages"].labels(count.topic).inc(count.messages)
        interval = metrics["check_interval_seconds"].labels(count.producer_group)
        interval.set(count.check_interval_seconds)
    for (state, group), number in messages.items():
        if state == PLAIN:
            metrics["plain_backlog_messages"].labels(group).set(number)
            metrics["plain_oldest_age_seconds"].labels(group).set(ages[state, group])
            continue
        metrics["half_messages"].labels(state, group).set(number)
        metrics["half_messages_capped"].labels(state, group).set(capped[state, group])
        metrics["half_oldest_age_seconds"].labels(state, group).set(ages[state, group])
        if state == PARKED:
            metrics["parked_messages"].labels(group).set(number)
