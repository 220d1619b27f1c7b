"""Searches for records take turns by tenant, so many of one tenant delay nobody else for long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from api.admin.installation import RECORD_LOOKS_MAX, Installation
from api.http.problems import Problem
from outbox.operators.health_check import HealthCheck
from outbox.operators.installation import PartitionState, ShardState, ShownSetting
from outbox.operators.rates import Rates
from tests.unit.checker.checks.fixtures_fakes import ManualClock


class SeenRecords:
    """An InstallationView that notes in which order records are looked for."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    def message_at(self, topic: str, partition: int, offset: int) -> str | None:
        """Note the topic; every third search ends with an error."""
        self.topics.append(topic)
        if partition == 2:
            raise OSError
        return f"{topic}/{partition}/{offset}"

    def shards(self) -> Sequence[ShardState]:
        """Return nothing."""
        return ()

    def partitions(self) -> Sequence[PartitionState]:
        """Return nothing."""
        return ()

    def rates(self) -> Rates:
        """Return nothing."""
        raise NotImplementedError

    def health(self) -> Sequence[HealthCheck]:
        """Return nothing."""
        return ()

    def settings(self) -> Sequence[ShownSetting]:
        """Return nothing."""
        return ()


def searches(shown: Installation, tenant: str, count: int) -> list[asyncio.Task[str | None]]:
    """Begin searches of a tenant, each in a topic of its name."""
    return [
        asyncio.create_task(shown.message_at(tenant, tenant, number % 3, number))
        for number in range(count)
    ]


async def test_a_tenant_with_many_searches_delays_another_by_one_of_them() -> None:
    view = SeenRecords()
    shown = Installation(view, str, ManualClock())
    tasks = [*searches(shown, "many", RECORD_LOOKS_MAX), *searches(shown, "one", 1)]
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(view.topics) == RECORD_LOOKS_MAX + 1
    assert view.topics.index("one") == 1


async def test_a_tenant_waits_for_a_bounded_number_of_searches_again_and_again() -> None:
    shown = Installation(SeenRecords(), str, ManualClock())
    for _ in range(2):
        tasks = [*searches(shown, "many", RECORD_LOOKS_MAX + 1), *searches(shown, "one", 1)]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [each for each in results if isinstance(each, Problem)]
        assert results[RECORD_LOOKS_MAX : RECORD_LOOKS_MAX + 1] == refused
        assert (refused[0].slug, refused[0].retry_after_seconds) == ("rate-limited", 1)
        assert results[-1] == "one/0/0"


@pytest.mark.parametrize("ended", ["answered", "failed", "gone"])
async def test_a_search_that_has_ended_makes_room(ended: str) -> None:
    shown = Installation(SeenRecords(), str, ManualClock())
    for _ in range(2 * RECORD_LOOKS_MAX):
        partition = 2 if ended == "failed" else 0
        task = asyncio.create_task(shown.message_at("a", "t", partition, 0))
        await asyncio.sleep(0)
        if ended == "gone":
            task.cancel()
        [result] = await asyncio.gather(task, return_exceptions=True)
        assert not isinstance(result, Problem)
