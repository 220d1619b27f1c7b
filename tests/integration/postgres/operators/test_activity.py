"""Each process adds what it did to one row a minute and group, and the sums are exact."""

from __future__ import annotations

import pytest

from outbox.operators.activity import COUNTS
from outbox.postgres.operators.activity import PostgresActivity
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_messages import make_group, store_group
from tests.integration.api.fixtures_rows import select

pytestmark = pytest.mark.postgres

EARLIER = (
    "INSERT INTO outbox.activity (minute, producer_group_id, prepared, check_timeout)"
    " SELECT date_trunc('minute', clock_timestamp()) - %s::interval, id, 100, 10"
    " FROM outbox.producer_group WHERE name = 'billing'"
)


async def test_what_all_processes_did_is_added_up_by_minute_group_and_outcome(pool: Pool) -> None:
    for name in ("billing", "shop"):
        await store_group(pool, make_group(name))
    for ago in ("30 minutes", "2 hours", "3 days"):
        await select(pool, EARLIER, ago)
    log = PostgresActivity(pool)
    for _ in range(2):
        await log.add({("billing", ""): {"check_timeout": 1}, ("shop", ""): {"published": 2}})
        await log.add({("billing", "a1"): {"prepared": 2}, ("billing", "b2"): {"prepared": 1}})
    await log.add({("nobody", ""): {"prepared": 1}})
    found = await log.last_hour()
    series = {each.name: each.counts for each in found.data}
    assert {name: sum(counts) for name, counts in series.items()} == {
        "prepared": 106,
        "committed": 0,
        "published": 4,
        "checked": 12,
    }
    assert series["prepared"][-2:] in ((0, 6), (6, 0), (3, 3))
    groups = {each.producer_group: each.counts for each in found.groups}
    assert (groups["billing"]["prepared"], groups["shop"]["published"]) == (106, 4)
    assert [(each.key_id, each.prepared) for each in found.api_keys] == [("a1", 4), ("b2", 2)]
    [timeouts] = found.check_outcomes
    assert (timeouts.outcome, timeouts.live, timeouts.day) == ("timeout", 2, 22)
    kept = "SELECT count(*)::int FROM outbox.activity WHERE minute < now() - interval '2 days'"
    assert await select(pool, kept) == [(0,)]


async def test_each_count_is_added_to_its_own_column(pool: Pool) -> None:
    await store_group(pool, make_group("billing"))
    log, counts = PostgresActivity(pool), {name: n for n, name in enumerate(COUNTS, 1)}
    for _ in range(2):
        await log.add({("billing", ""): counts})
    [group] = (await log.last_hour()).groups
    assert group.counts == {name: 2 * n for name, n in counts.items()}
