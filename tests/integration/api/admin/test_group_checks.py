"""The last checks of a producer group."""

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
