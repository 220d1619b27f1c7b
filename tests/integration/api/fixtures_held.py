"""Records that Kafka refuses, as the relay stores them."""

from __future__ import annotations

from typing import LiteralString

from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select

_HOLD: LiteralString = """
INSERT INTO outbox.held_record (
    half_id, nonce, shard, topic_id, key, xid, n, publish_error, attempts, next_attempt_at)
SELECT half_id, nonce, half_id & 15, topic_id, key, half_id >> 15, half_id >> 4 & 7, %s, 1,
    clock_timestamp() + interval '1 day'
FROM outbox.half_message WHERE half_id = %s
"""


async def hold(pool: Pool, message_id: str, error: str = "MSG_SIZE_TOO_LARGE") -> None:
    """Let a committed message be one that Kafka has refused once."""
    await select(pool, _HOLD, error, parse_message_id(message_id)[0])
