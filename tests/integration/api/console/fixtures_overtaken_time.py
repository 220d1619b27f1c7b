"""What time would do: checks that were made, breakers that opened, delays that are over."""

from __future__ import annotations

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select

CHECKED = """
INSERT INTO outbox.check_attempt
    (half_id, look_id, round, attempt, asked_at, outcome, http_status, latency_ms, counted, applied)
SELECT half_id, half_id, 1, 15, clock_timestamp(), %s, %s, 5, true, false
FROM outbox.half_message WHERE half_id NOT IN (SELECT half_id FROM outbox.check_attempt)
"""
TRIPPED = (
    "INSERT INTO outbox.check_breaker (producer_group_id, wait_seconds, probe_at)"
    " SELECT id, 60, clock_timestamp() + make_interval(secs => %s)"
    " FROM outbox.producer_group WHERE name = %s"
)
"""Opens the breaker of a group for so many seconds."""
BEAT = (
    "INSERT INTO outbox.progress (name, position, position_n, updated_at)"
    " SELECT 'heartbeat:' || task, 0, 0, clock_timestamp()"
    " FROM unnest(ARRAY['relay', 'check', 'sweep', 'retire', 'leaves']) AS task"
    " ON CONFLICT (name) DO UPDATE SET updated_at = excluded.updated_at"
)
"""Writes the heartbeats of a checker."""


async def begin_now(pool: Pool) -> None:
    """End the delay of every action."""
    await select(pool, "UPDATE outbox.bulk_action SET starts_at = clock_timestamp()")
