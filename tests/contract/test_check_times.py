"""What the API shows of checks: when the next one is due, and every parking."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from outbox.messages.message_id import parse_message_id
from tests.contract.service.fixtures_service import ServicePlace
from tests.contract.service.fixtures_service_model import CHECK_MAX, INTERVAL, MAX_AGE
from tests.integration.api.fixtures_service import TOPIC

pytestmark = pytest.mark.postgres

OPERATOR = {"operator": "night shift", "reason": "its service is back"}
BACK_OFF = """
UPDATE outbox.producer_group SET backoff = 'exponential', max_age_seconds = %(max_age)s
"""
OPEN_BREAKER = """
INSERT INTO outbox.check_breaker (producer_group_id, wait_seconds, probe_at)
VALUES (%(group)s, 300, clock_timestamp() + interval '300 seconds') RETURNING probe_at
"""
DUE = "SELECT due_at FROM outbox.check_queue WHERE half_id = %(half)s ORDER BY id DESC LIMIT 1"


async def prepared(place: ServicePlace) -> str:
    body = {"producer_group": "account", "topic": TOPIC, "value": "{}"}
    message_id: str = (await place.call("", body)).json()["message_id"]
    return message_id


async def next_check_at(place: ServicePlace, message_id: str) -> datetime:
    return datetime.fromisoformat((await place.read(message_id))["next_check_at"])


async def test_the_next_check_is_shown_when_the_queue_has_it_due(place: ServicePlace) -> None:
    group = await place.register("account", rolls_back=False)
    await place.checker().execute(BACK_OFF, max_age=30 * MAX_AGE)
    message_id = await prepared(place)
    for _ in range(CHECK_MAX):
        await place.pass_time(4 * INTERVAL)
        await place.check(group)
        await shows_its_row(place, message_id)
    await place.call(f"/{message_id}/recheck", OPERATOR)
    await shows_its_row(place, message_id)


async def test_the_next_check_is_not_shown_before_the_probe_of_an_open_breaker(
    place: ServicePlace,
) -> None:
    group = await place.register("account", rolls_back=False)
    message_id = await prepared(place)
    await place.pass_time(4 * INTERVAL)
    await place.sweep()
    ((probe_at,),) = await place.checker().rows(OPEN_BREAKER, group=group.id)
    assert await next_check_at(place, message_id) == probe_at


async def shows_its_row(place: ServicePlace, message_id: str) -> None:
    half = parse_message_id(message_id)[0]
    ((due_at,),) = await place.checker().rows(DUE, half=half)
    assert abs(await next_check_at(place, message_id) - due_at) < timedelta(milliseconds=1)


async def test_the_history_keeps_every_parking(place: ServicePlace) -> None:
    group = await place.register("account", rolls_back=False)
    message_id = await prepared(place)
    for _ in range(2):
        await place.pass_time(MAX_AGE)
        await place.check(group)
        await place.call(f"/{message_id}/recheck", OPERATOR)
    assert place._service is not None
    answer = await place._service.client.get(f"/v1/half-messages/{message_id}/history")
    events = [each for each in answer.json()["events"] if each["type"] in ("parked", "recheck")]
    assert [each["type"] for each in events] == ["parked", "recheck"] * 2
    parked = [each for each in events if each["type"] == "parked"]
    assert {each["reason"] for each in parked} == {"max_age"}
    assert parked[0]["at"] < parked[1]["at"]
