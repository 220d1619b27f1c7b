"""Semantics 3.1, ABSENT: ends of messages that Kafka has and PostgreSQL lost."""

from __future__ import annotations

from typing import LiteralString

import pytest

from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select, stored
from tests.integration.api.fixtures_service import GROUP, Service

pytestmark = pytest.mark.postgres

ORPHAN: LiteralString = """
INSERT INTO outbox.already_published (producer_group, half_id, nonce, shard, manifest_offset)
VALUES (%s, %s, %s, 0, 0)
"""


async def test_an_end_of_a_message_that_only_kafka_has_is_answered_as_published(
    service: Service, pool: Pool
) -> None:
    own, foreign = await service.prepared_id(), await service.prepared_id()
    for message_id, group in ((own, GROUP), (foreign, "gone")):
        await select(pool, ORPHAN, group, *parse_message_id(message_id))
    await select(pool, "DELETE FROM outbox.half_message")
    same = await service.end(own, "COMMIT")
    assert (same.status_code, same.json()["already_ended"]) == (200, True)
    answer = [same.json()[name] for name in ("state", "decision", "decided_by")]
    assert answer == ["PUBLISHED", "COMMIT", "recovery"]
    other = await service.end(own, "ROLLBACK")
    assert (other.status_code, other.json()["code"]) == (409, "already-ended")
    assert other.json()["winning_decision"] == "COMMIT"
    assert (await service.end(foreign, "COMMIT")).status_code == 404
    assert await stored(pool) == (0, 0, 0, 0)
