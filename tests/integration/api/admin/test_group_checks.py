"""The last checks of a producer group, its due checks, and the age of its secret."""

from __future__ import annotations

from typing import LiteralString

import pytest

from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres

CHECKED: LiteralString = """
INSERT INTO outbox.check_attempt
    (half_id, look_id, round, attempt, asked_at, outcome, http_status, latency_ms, counted, applied)
SELECT half_id, half_id + %s, 1, %s, clock_timestamp(), %s, %s, 5, true, false
FROM outbox.half_message WHERE half_id = %s
"""


async def test_the_last_checks_of_a_group_are_listed_the_newest_first(
    service: Service, pool: Pool
) -> None:
    await service.put_group("other")
    ids = [await service.prepared_id() for _ in range(3)]
    await service.prepared_id(producer_group="other")
    for number, message_id in enumerate(ids):
        half_id = parse_message_id(message_id)[0]
        await select(pool, CHECKED, 0, number + 1, "http_error", 500 + number, half_id)
    await select(pool, CHECKED, 1, 9, "unknown", 200, parse_message_id(ids[0])[0])
    found = (await service.client.get("/v1/producer-groups/billing/checks")).json()
    shown = [(each["message_id"], each["http_status"]) for each in found["data"]]
    assert shown == [(ids[0], 200), (ids[2], 502), (ids[1], 501), (ids[0], 500)]
    assert found["data"][0] | {"at": None} == {
        "message_id": ids[0],
        "at": None,
        "attempt": 9,
        "outcome": "unknown",
        "http_status": 200,
        "latency_ms": 5,
        "counted": True,
        "applied": False,
    }
    other = (await service.client.get("/v1/producer-groups/other/checks")).json()
    assert other["data"] == []
    assert (await service.client.get("/v1/producer-groups/none/checks")).status_code == 404


QUEUED: LiteralString = """
INSERT INTO outbox.check_queue (
    producer_group_id, delay_seconds, id,
    half_id, round, check_count, only_unknown, age_from, due_at)
SELECT g.id, 77, n, 1, 1, 0, true, clock_timestamp(), clock_timestamp() + n * interval '1 minute'
FROM outbox.producer_group g, generate_series(-4, 5) n WHERE g.name = %s
"""
CLASS: LiteralString = """
INSERT INTO outbox.check_class (producer_group_id, delay_seconds, position)
SELECT id, 77, -4 FROM outbox.producer_group WHERE name = %s
"""


async def test_the_due_checks_of_a_group_are_those_behind_its_cursors(
    service: Service, pool: Pool
) -> None:
    await service.put_group("other")
    await select(pool, CLASS, "other")
    await select(pool, QUEUED, "other")
    due = {name: (await health(service, name))["due"] for name in ("billing", "other")}
    assert due == {"billing": 0, "other": 4}


async def health(service: Service, group: str) -> dict[str, object]:
    """Return the health of a group."""
    answer = await service.client.get(f"/v1/producer-groups/{group}/health")
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found
