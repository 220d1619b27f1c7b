from __future__ import annotations

import asyncio

import pytest

from checker.checks.fair_semaphore import FairSemaphore

HANGING, HEALTHY = 1, 2


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def hang(semaphore: FairSemaphore, group: int, release: asyncio.Event) -> None:
    async with semaphore.call(group):
        await release.wait()


@pytest.mark.parametrize(("limit", "held"), [(1, 1), (8, 4)])
async def test_one_hanging_group_leaves_half_of_the_calls(limit: int, held: int) -> None:
    semaphore, release = FairSemaphore(limit), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(limit * 2):
            tasks.create_task(hang(semaphore, HANGING, release))
        await settle()
        assert semaphore.held(HANGING) == held
        release.set()
    assert semaphore.held(HANGING) == 0


async def test_a_group_without_a_call_waits_for_one_call_and_not_for_a_queue() -> None:
    semaphore, first, rest = FairSemaphore(4), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for group, release in ((10, first), (10, rest), (11, rest), (12, rest)):
            tasks.create_task(hang(semaphore, group, release))
        for group in (10, 11, 12) * 20:
            tasks.create_task(hang(semaphore, group, rest))
        healthy = tasks.create_task(hang(semaphore, HEALTHY, rest))
        await settle()
        assert semaphore.held(HEALTHY) == 0
        first.set()
        await settle()
        assert semaphore.held(HEALTHY) == 1
        rest.set()
    assert healthy.done()


async def test_a_cancelled_wait_holds_nothing() -> None:
    semaphore = FairSemaphore(1)
    async with semaphore.call(HANGING):
        waiting = asyncio.create_task(hang(semaphore, HEALTHY, asyncio.Event()))
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(1), semaphore.call(HEALTHY):
        assert semaphore.held(HEALTHY) == 1
