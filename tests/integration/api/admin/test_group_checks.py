"""The last checks of a producer group."""

from __future__ import annotations

from typing import LiteralString

import pytest

from outbox.messages.message_id import parse_message_id
from outbox.postgres.operators.message_browser import CHECKED_ROWS
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


EACH_CHECKED: LiteralString = """
INSERT INTO outbox.check_attempt
    (half_id, look_id, round, attempt, asked_at, outcome, latency_ms, counted, applied)
SELECT half_id, half_id, 1, 1, clock_timestamp(), 'unknown', 5, true, false
FROM outbox.half_message
"""
NEWER: LiteralString = """
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
SELECT half_id + (n << 15), n, prepared_at, 0, producer_group_id, topic_id
FROM outbox.half_message, generate_series(1, %s) n WHERE half_id = %s
"""


async def test_the_checks_of_an_old_message_are_found_behind_many_unchecked_ones(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id()
    half_id = parse_message_id(message_id)[0]
    await select(pool, CHECKED, 0, 1, "commit", 200, half_id)
    await select(pool, NEWER, CHECKED_ROWS + 1, half_id)
    found = (await service.client.get("/v1/producer-groups/billing/checks")).json()
    assert [each["message_id"] for each in found["data"]] == [message_id]
    assert found["searched_back_to"] is None


async def test_a_search_that_stops_says_where(service: Service, pool: Pool) -> None:
    message_id = await service.prepared_id()
    half_id = parse_message_id(message_id)[0]
    await select(pool, NEWER, CHECKED_ROWS, half_id)
    await select(pool, EACH_CHECKED)
    found = (await service.client.get("/v1/producer-groups/billing/checks")).json()
    assert len(found["data"]) == 50
    assert found["searched_back_to"] is not None


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
