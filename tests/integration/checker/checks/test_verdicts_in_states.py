"""The answer to a check takes effect in the message's state at that time."""

from __future__ import annotations

import pytest
from aiohttp import web

from outbox.messages.message import HalfMessage
from tests.contract.service.fixtures_service import PUBLISHED
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Answer, Check, Producer, says, status

pytestmark = pytest.mark.postgres

STATES = ("PUBLISHED", "PREPARED", "PARKED", "COMMITTED", "ROLLED_BACK", "ABSENT")
"""In the order of the checks: whoever publishes, publishes what is committed by then."""
PARK = """
INSERT INTO outbox.parked_message
    (half_id, producer_group_id, parked_at, parked_reason, check_count)
SELECT half_id, producer_group_id, clock_timestamp(), 'max_age', 0
FROM outbox.half_message WHERE half_id = %(half)s
"""
FORGET = "DELETE FROM outbox.half_message WHERE half_id = %(half)s"
OPS = "SELECT count(*) FROM outbox.op_message WHERE half_id = %(half)s"
DECISIONS = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}
ANSWERS: dict[str, tuple[Answer, str, bool]] = {
    "COMMIT": (says("COMMIT"), "commit", False),
    "ROLLBACK": (says("ROLLBACK"), "rollback", False),
    "UNKNOWN": (says("UNKNOWN"), "unknown", True),
    "without verdict": (status(404), "http_error", True),
    "overloaded": (status(503), "http_error", False),
}
"""The answer, the stored outcome, and whether it spends a check of a PREPARED half."""


async def bring(world: World, half: HalfMessage, state: str) -> None:
    """Bring a due half into a state."""
    if state in ("COMMITTED", "PUBLISHED", "ROLLED_BACK"):
        await world.end(half, "ROLLBACK" if state == "ROLLED_BACK" else "COMMIT")
    if state == "PUBLISHED":
        await world.execute(PUBLISHED)
    if state in ("PARKED", "ABSENT"):
        await world.execute(PARK if state == "PARKED" else FORGET, half=half.half_id)


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_in_every_state_follows_the_table(
    world: World, subtests: pytest.Subtests, name: str
) -> None:
    answer, outcome, spent = ANSWERS[name]
    async with Producer(answer) as producer:
        group = await world.group(producer.url, max_inflight=1)
        halves = dict(zip(STATES, await world.due(group, len(STATES)), strict=True))
        by_id = {str(half.message_id): state for state, half in halves.items()}

        async def after_the_change(request: web.Request, check: Check) -> web.StreamResponse:
            state = by_id[check["message_id"]]
            await bring(world, halves[state], state)
            return await answer(request, check)

        producer.answer = after_the_change
        await world.check(group)
    assert await world.rows(OPS, half=halves.pop("ABSENT").half_id) == [(0,)]
    for state, half in halves.items():
        with subtests.test(state):
            open_still = state in ("PREPARED", "PARKED")
            expected = DECISIONS.get(name, state) if open_still else state
            assert (await world.states([half]))[0].value == expected
            ((attempt, noted, counted, applied),) = await world.attempts(half)
            assert (attempt, noted, applied) == (1, outcome, open_still and name in DECISIONS)
            assert counted == (spent and state == "PREPARED")
