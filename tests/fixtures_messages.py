"""Values for tests: name only what matters, the rest has a default."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import Message
from outbox.postgres.sessions.connections import Pool

_INSERT_GROUP = """
INSERT INTO outbox.producer_group (name, check_url, check_interval_seconds, check_max,
    check_timeout_seconds, transaction_timeout_seconds, on_check_max, backoff, max_inflight,
    batch_check, check_payload, topics, max_age_seconds, paused, secret)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
RETURNING id
"""


def make_group(name: str = "account", **fields: Any) -> ProducerGroup:
    """Return a producer group with RocketMQ's defaults, not stored."""
    return replace(ProducerGroup(id=1, name=name, check_url="http://127.0.0.1:1/check"), **fields)


async def store_group(pool: Pool, group: ProducerGroup, secret: bytes = b"") -> ProducerGroup:
    """Store a producer group; return it with its interned id."""
    async with pool.connection() as connection:
        cursor = await connection.execute(
            _INSERT_GROUP,
            (
                group.name,
                group.check_url,
                group.check_interval_seconds,
                group.check_max,
                group.check_timeout_seconds,
                group.transaction_timeout_seconds,
                group.on_check_max.value,
                group.backoff.value,
                group.max_inflight,
                group.batch_check,
                group.check_payload,
                list(group.topics),
                group.max_age_seconds,
                group.paused,
                secret,
            ),
        )
        row = await cursor.fetchone()
    assert row is not None
    return replace(group, id=row[0])


async def store_topic(pool: Pool, name: str) -> int:
    """Intern a topic name; return its id."""
    async with pool.connection() as connection:
        cursor = await connection.execute(
            "INSERT INTO outbox.topic (name) VALUES (%s)"
            " ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name RETURNING id",
            (name,),
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


def make_message(
    group: ProducerGroup | None = None,
    *,
    topic: str = "points-earned",
    topic_id: int = 1,
    key: bytes | None = b"member-1",
    value: bytes | None = b'{"points":100}',
    transaction_id: str | None = None,
    **fields: Any,
) -> Message:
    """Return a valid prepare request; ``fields`` are further ones of Message."""
    group = group or make_group()
    return Message(
        topic=topic,
        key=key,
        value=value,
        producer_group=group.name,
        producer_group_id=group.id,
        topic_id=topic_id,
        transaction_id=transaction_id,
        **fields,
    )
