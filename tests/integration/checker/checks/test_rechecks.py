"""A recheck makes a parked half due now, whatever its age."""

from __future__ import annotations

import pytest

from outbox.messages.message import State
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says

pytestmark = pytest.mark.postgres

NO_SERVER = "http://127.0.0.1:1/check"


async def test_a31_a_half_parked_for_100_hours_is_checked_at_once_and_not_parked_again_by_age(
    world: World,
) -> None:
    group = await world.group(NO_SERVER)
    (half,) = await world.due(group)
    await world.pass_time(group.max_age_seconds)
    await world.check(group)
    assert await world.states([half]) == [State.PARKED]
    await world.pass_time(100 * 3600)
    async with Producer(says("COMMIT")) as producer:
        await world.execute(
            "UPDATE outbox.producer_group SET check_url = %(url)s", url=producer.url
        )
        await world.recheck(half)
        round_ = await world.check(group)
    assert (round_.asked, round_.parked, len(producer.asked)) == (1, 0, 1)
    assert await world.states([half]) == [State.COMMITTED]
    committed = "SELECT half_ids FROM outbox.commit_log WHERE %(half)s = ANY (half_ids)"
    assert await world.rows(committed, half=half.half_id) == [([half.half_id],)]
