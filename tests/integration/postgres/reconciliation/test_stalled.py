"""What makes no progress, on a real PostgreSQL: the exact time from which each item counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from outbox.messages.message import HalfMessage, Prepared
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.reconciliation.source import PostgresSnapshot
from outbox.postgres.sessions.connections import Pool, connect
from outbox.reconciliation.snapshot import SnapshotIdentity, Stalled
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

pytestmark = pytest.mark.postgres

STUCK, SILENT = "STUCK/half", "STUCK/checks"
INTERVAL = 60
MAX_AGE = 3600
IMMUNITY = 6


@pytest.fixture
async def half(pool: Pool) -> HalfMessage:
    """A half message of a group, not yet seen by the sweep."""
    group = await store_group(
        pool,
        make_group(
            check_interval_seconds=INTERVAL,
            max_age_seconds=MAX_AGE,
            check_max=2,
            transaction_timeout_seconds=IMMUNITY,
        ),
    )
    message = make_message(group, topic="points", topic_id=await store_topic(pool, "points"))
    (answer,) = await PostgresHalfStore(pool).prepare([message])
    assert isinstance(answer, Prepared)
    return answer.half


def execute(url: str, statement: str, **given: Any) -> None:
    """Run one statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode(), given)


def stalled_at(url: str, at: datetime, cause: str) -> list[Stalled]:
    """Return what has a cause and makes no progress at some time."""
    with connect(url, "test") as connection:
        identity = SnapshotIdentity(exported_id="", visible="", taken_at=at)
        found = PostgresSnapshot(connection, identity).stalled()
        return [each for each in found if each.cause == cause]


def moment(found: Stalled, name: str) -> datetime:
    """Return a time of its evidence."""
    return datetime.fromisoformat(found.evidence[name])


def put_back(url: str, half: HalfMessage, **fields: Any) -> None:
    """Put the half into the queue of checks and move the cursor of the sweep past it."""
    group = half.message.producer_group_id
    row = {"group": group, "half": half.half_id, "at": half.prepared_at, "count": 0, **fields}
    execute(
        url,
        "INSERT INTO outbox.progress (name, position) VALUES ('sweep', %(half)s)"
        " ON CONFLICT (name) DO UPDATE SET position = excluded.position",
        half=half.half_id,
    )
    execute(
        url,
        "INSERT INTO outbox.check_class (producer_group_id, delay_seconds) VALUES (%(group)s, 60)",
        group=group,
    )
    execute(
        url,
        "INSERT INTO outbox.check_queue"
        " (producer_group_id, delay_seconds, id, half_id, check_count, age_from, due_at)"
        " VALUES (%(group)s, 60, 1, %(half)s, %(count)s, %(at)s, %(at)s)",
        **row,
    )


def after(half: HalfMessage, seconds: int) -> datetime:
    """Return a moment after the prepare."""
    return half.prepared_at + timedelta(seconds=seconds)


def test_a_half_is_stalled_two_intervals_after_its_age_was_spent(
    half: HalfMessage, database_url: str
) -> None:
    assert stalled_at(database_url, after(half, MAX_AGE + 2 * INTERVAL), STUCK) == []
    (found,) = stalled_at(database_url, after(half, MAX_AGE + 2 * INTERVAL + 1), STUCK)
    assert (found.half_id, found.nonce, found.topic) == (half.half_id, half.nonce, "points")
    assert moment(found, "end_due_at") == after(half, MAX_AGE)
    facts = ("max_age", 0, None)
    assert (
        tuple(map(found.evidence.get, ("end_demanded_by", "checks_spent", "last_outcome"))) == facts
    )


def test_a_half_of_a_paused_group_is_stalled_only_after_those_before_it_in_its_class(
    half: HalfMessage, database_url: str
) -> None:
    """A group that cannot be asked parks from the head of its queue."""
    put_back(database_url, half)
    before = (
        "INSERT INTO outbox.check_queue"
        " (producer_group_id, delay_seconds, id, half_id, age_from, due_at)"
        " VALUES (%(group)s, 60, 0, 1, %(later)s, %(later)s)"
    )
    group, later = half.message.producer_group_id, after(half, 900)
    execute(database_url, "UPDATE outbox.check_class SET position = -1")
    execute(database_url, before, group=group, later=later)
    late = after(half, MAX_AGE + 2 * INTERVAL + 1)
    assert len(stalled_at(database_url, late, STUCK)) == 1
    execute(database_url, "UPDATE outbox.producer_group SET paused = true")
    assert stalled_at(database_url, late, STUCK) == []
    assert len(stalled_at(database_url, late + timedelta(seconds=900), STUCK)) == 1


def test_a_parked_half_is_not_stalled(half: HalfMessage, database_url: str) -> None:
    execute(
        database_url,
        "INSERT INTO outbox.parked_message (half_id, producer_group_id, parked_at, parked_reason,"
        " check_count) SELECT half_id, producer_group_id, prepared_at, 'max_age', 2"
        " FROM outbox.half_message",
    )
    late = after(half, 10 * MAX_AGE)
    assert stalled_at(database_url, late, STUCK) + stalled_at(database_url, late, SILENT) == []


def test_a_group_is_silent_two_intervals_after_a_half_was_due(
    half: HalfMessage, database_url: str
) -> None:
    assert stalled_at(database_url, after(half, IMMUNITY + 2 * INTERVAL), SILENT) == []
    (unswept,) = stalled_at(database_url, after(half, IMMUNITY + 2 * INTERVAL + 1), SILENT)
    assert moment(unswept, "due_since") == after(half, IMMUNITY)
    put_back(database_url, half)
    (queued,) = stalled_at(database_url, after(half, 2 * INTERVAL + 1), SILENT)
    assert moment(queued, "due_since") == after(half, 0)
    assert queued.evidence["last_heartbeat_at"] is None


@pytest.mark.parametrize(
    "excuse",
    [
        "UPDATE outbox.producer_group SET paused = true",
        "INSERT INTO outbox.check_breaker (producer_group_id, wait_seconds, probe_at)"
        " SELECT id, 60, clock_timestamp() FROM outbox.producer_group",
        "INSERT INTO outbox.check_attempt (half_id, look_id, round, attempt, asked_at, outcome,"
        " latency_ms, counted, applied)"
        " VALUES (%(half)s, 1, 1, 1, %(asked_at)s, 'unknown', 1, true, false)",
    ],
    ids=["paused", "behind a breaker", "asked about"],
)
def test_a_group_that_is_paused_or_broken_off_or_asked_about_is_not_silent(
    half: HalfMessage, database_url: str, excuse: str
) -> None:
    put_back(database_url, half)
    late = after(half, 2 * INTERVAL + 30)
    assert stalled_at(database_url, late, SILENT)
    given = {"half": half.half_id, "asked_at": after(half, 60)} if "%(" in excuse else {}
    execute(database_url, excuse, **given)
    assert stalled_at(database_url, late, SILENT) == []
