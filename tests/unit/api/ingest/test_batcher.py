"""The batcher groups, seals and answers; a cancelled or failed caller does not affect others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from api.ingest import batcher as batcher_module
from api.ingest.batcher import MicroBatcher
from outbox.errors import DatabaseUnavailable, Overloaded


class GatedStore:
    """A store whose flushes wait until the test releases them; it records their items."""

    def __init__(self) -> None:
        self.flushes: list[list[str]] = []
        self.begun = asyncio.Semaphore(0)
        self.gate = asyncio.Semaphore(0)
        self.failure: Exception | None = None

    async def flush(self, items: Sequence[str]) -> Sequence[str]:
        self.flushes.append(list(items))
        self.begun.release()
        await self.gate.acquire()
        if self.failure is not None:
            raise self.failure
        return [item.upper() for item in items]


def batcher_of(store: GatedStore, **limits: int) -> MicroBatcher[str, str]:
    return MicroBatcher(store.flush, lambda _: None, **limits)


async def submit(batcher: MicroBatcher[str, str], *items: str) -> asyncio.Task[Sequence[str]]:
    """Submit in a separate task and let it join the queue."""
    task = asyncio.create_task(batcher.submit(items))
    await asyncio.sleep(0)
    return task


async def test_concurrent_requests_share_a_flush_and_get_their_own_answers() -> None:
    store = GatedStore()
    batcher = batcher_of(store)
    tasks = [asyncio.create_task(batcher.submit([name, name + name])) for name in "abc"]
    await store.begun.acquire()
    store.gate.release()
    assert await asyncio.gather(*tasks) == [["A", "AA"], ["B", "BB"], ["C", "CC"]]
    assert store.flushes == [["a", "aa", "b", "bb", "c", "cc"]]


async def test_no_caller_is_answered_before_the_flush_has_returned() -> None:
    store = GatedStore()
    task = await submit(batcher_of(store), "a")
    await store.begun.acquire()
    assert not task.done()
    store.gate.release()
    assert await task == ["A"]


async def test_a_cancelled_caller_does_not_affect_the_others() -> None:
    store = GatedStore()
    batcher = batcher_of(store)
    gone = asyncio.create_task(batcher.submit(["a"]))
    stays = asyncio.create_task(batcher.submit(["b"]))
    await store.begun.acquire()
    gone.cancel()
    store.gate.release()
    assert await stays == ["B"]
    assert store.flushes == [["a", "b"]]


async def test_a_failed_flush_raises_for_each_of_its_callers_and_the_next_one_runs() -> None:
    store = GatedStore()
    batcher = batcher_of(store)
    store.failure = DatabaseUnavailable("down")
    first = asyncio.create_task(batcher.submit(["a"]))
    second = asyncio.create_task(batcher.submit(["b"]))
    store.gate.release()
    for task in (first, second):
        with pytest.raises(DatabaseUnavailable):
            await task
    store.failure = None
    third = await submit(batcher, "c")
    store.gate.release()
    assert await third == ["C"]


async def test_a_flush_takes_no_more_rows_than_its_limit_and_splits_no_submission() -> None:
    store = GatedStore()
    batcher = batcher_of(store, rows=3)
    tasks = [asyncio.create_task(batcher.submit([name] * 2)) for name in "abc"]
    for _ in tasks:
        await store.begun.acquire()
        store.gate.release()
    await asyncio.gather(*tasks)
    assert store.flushes == [["a", "a"], ["b", "b"], ["c", "c"]]


async def test_a_full_queue_refuses_and_stores_nothing() -> None:
    store = GatedStore()
    batcher = batcher_of(store, waiting_rows=1)
    running = await submit(batcher, "a")
    await store.begun.acquire()
    waiting = await submit(batcher, "b")
    with pytest.raises(Overloaded) as refused:
        await batcher.submit(["c"])
    assert refused.value.retry_after_seconds >= 1
    store.gate.release()
    store.gate.release()
    assert [*await running, *await waiting] == ["A", "B"]
    assert store.flushes == [["a"], ["b"]]


async def test_draining_waits_for_everything_that_was_accepted() -> None:
    store = GatedStore()
    batcher = batcher_of(store)
    first = await submit(batcher, "a")
    await store.begun.acquire()
    second = await submit(batcher, "b")
    store.gate.release()
    store.gate.release()
    await batcher.drain()
    assert [*await first, *await second] == ["A", "B"]


async def test_what_has_waited_too_long_is_refused_after_a_flush_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else each waits for all flushes before it to fail, one after the other."""
    monkeypatch.setattr(batcher_module, "WAIT_SECONDS", 0.0)
    store = GatedStore()
    batcher = batcher_of(store, rows=1)
    store.failure = DatabaseUnavailable("no answer")
    asked = [await submit(batcher, each) for each in "abc"]
    store.gate.release()
    for each in asked:
        with pytest.raises(DatabaseUnavailable):
            await asyncio.wait_for(each, 60)
    assert store.flushes == [["a"]]
