"""The tables of checks: the queue, its delay classes, the attempts, the breakers, the rechecks."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table, Text

from outbox.postgres.schema.tables import METADATA, TIME, half_id, needed

check_attempt = Table(
    "check_attempt",
    METADATA,
    half_id(),
    Column("look_id", BigInteger, primary_key=True),
    needed("round", Integer),
    needed("attempt", Integer),
    needed("asked_at", TIME),
    needed("outcome", Text),
    Column("http_status", Integer),
    needed("latency_ms", Integer),
    needed("counted", Boolean),
    needed("applied", Boolean),
    Column("error", Text),
)

check_queue = Table(
    "check_queue",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("delay_seconds", Integer, primary_key=True),
    Column("id", BigInteger, primary_key=True),
    needed("half_id", BigInteger),
    needed("round", Integer),
    needed("check_count", Integer),
    needed("only_unknown", Boolean),
    needed("age_from", TIME),
    needed("due_at", TIME),
)

check_class = Table(
    "check_class",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True),
    Column("delay_seconds", Integer, primary_key=True),
    needed("position", BigInteger),
)

check_breaker = Table(
    "check_breaker",
    METADATA,
    Column("producer_group_id", Integer, primary_key=True, autoincrement=False),
    needed("wait_seconds", Integer),
    needed("probe_at", TIME),
)

recheck = Table(
    "recheck",
    METADATA,
    half_id(),
    needed("round", Integer),
    needed("rechecked_at", TIME),
)
