"""A large body is decoded in steps, one at a time; so nobody waits for the whole of it."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from api.http.exchange import HttpRequest
from api.http.in_flight import InFlight
from api.http.problems import Problem
from api.http.rate_limits import RefusalPause
from api.ingest.bodies import work_steps
from api.ingest.bodies.batch_scan import ITEM_PARTS_MAX, STEP_BYTES
from api.ingest.bodies.fair_decoder import (
    LARGE_BYTES,
    LARGE_ITEM_BYTES,
    BatchForm,
    FairDecoder,
    spend_nothing,
)
from api.ingest.schemas import END, END_BATCH, END_ITEM, EndItem
from outbox.access import Caller
from tests.unit.checker.checks.fixtures_fakes import ManualClock

ENDS = BatchForm(END_BATCH, END_ITEM)
GOOD = b'{"message_id":"x","decision":"COMMIT"}'
ITEM_MAX = 1_048_576


def batch(*items: bytes, size: int = LARGE_BYTES) -> bytes:
    """Return the body of a batch, filled up with blanks to its size."""
    body = b'{"items":[' + b",".join(items) + b"]}"
    return body[:-2] + b" " * (size - len(body)) + b"]}"


def request(body: bytes, tenant: str = "a") -> HttpRequest:
    """Return a request of a tenant."""
    caller = Caller(key_id=tenant, scopes=frozenset(), groups=frozenset({tenant}))
    return HttpRequest("/", {}, body, caller, "r")


def decoder(room: InFlight | None = None) -> FairDecoder:
    """Return a decoder whose pauses end at once."""
    in_flight = room or InFlight(1000)
    return FairDecoder(RefusalPause(in_flight, ManualClock()), in_flight, ITEM_MAX)


@pytest.fixture
def every_step_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others work after each step, however short it was, and pause nobody."""
    monkeypatch.setattr(work_steps, "STEP_SECONDS", 0.0)
    monkeypatch.setattr("api.http.rate_limits.FREE_SECONDS", float("inf"))


async def decoded(body: bytes) -> Sequence[EndItem | Problem]:
    return await decoder().batch(request(body), ENDS, spend_nothing)


def slugs(items: Sequence[EndItem | Problem]) -> list[str]:
    """Return what became of each item."""
    return [each.slug if isinstance(each, Problem) else "decoded" for each in items]


@pytest.mark.usefixtures("every_step_rests")
async def test_a_large_item_is_judged_like_a_small_one() -> None:
    for size in (10, LARGE_ITEM_BYTES):
        filler = b'{"message_id":"' + b"x" * size
        good, twice = filler + b'","decision":"COMMIT"}', filler + b'","message_id":"y"}'
        surrogate, wrong = filler + b'\\ud800","decision":"COMMIT"}', filler + b'","decision":1}'
        items = await decoded(batch(good, twice, surrogate, wrong))
        bad = "invalid-request"
        assert slugs(items) == ["decoded", bad, bad, bad]
        single = b'{"decision":"COMMIT","decision":"COMMIT"' + b" " * LARGE_BYTES + b"}"
        with pytest.raises(Problem) as refused:
            await decoder().single(request(single), END)
        assert refused.value.errors[0][0] == "/decision"


@pytest.mark.usefixtures("every_step_rests")
@pytest.mark.parametrize("size", [1000, LARGE_BYTES])
async def test_a_large_batch_is_answered_like_a_small_one(size: int) -> None:
    twice = b'{"message_id":"y","decision":"COMMIT","decision":"ROLLBACK"}'
    surrogate = b'{"message_id":"\\ud800","decision":"COMMIT"}'
    items = await decoded(batch(GOOD, b"5", twice, GOOD, surrogate, size=size))
    bad = "invalid-request"
    assert slugs(items) == ["decoded", bad, bad, "decoded", bad]
    pointers = [each.errors[0][0] for each in items if isinstance(each, Problem)]
    assert pointers == ["", "/decision", "/message_id"]
    for broken in (b"{", b"'x'", b"", b"[" * 15 + b"]" * 15, b"1e999999", b"\xff"):
        with suppress(Problem):
            found = await decoded(batch(GOOD, broken, size=size))
            assert broken == b"1e999999"
            assert slugs(found) == ["decoded", "invalid-request"]


@pytest.mark.usefixtures("every_step_rests")
async def test_others_have_a_turn_after_each_step() -> None:
    task = asyncio.create_task(decoded(batch(b'{"message_id":"' + b"x" * 10**6 + b'"}')))
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10**6 // STEP_BYTES
    assert slugs(await task) == ["invalid-request"]


@pytest.mark.usefixtures("every_step_rests")
async def test_others_have_a_turn_after_each_item_of_a_small_batch_that_is_refused() -> None:
    task = asyncio.create_task(decoded(batch(*[b"{}"] * 1000, size=5000)))
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 1000


async def turns_during(work: Coroutine[Any, Any, object]) -> int:
    """Return how often others had a turn until some work was done, or was refused."""
    task, turns = asyncio.create_task(work), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await asyncio.gather(task, return_exceptions=True)
    return turns


@pytest.mark.usefixtures("every_step_rests")
async def test_others_have_a_turn_before_and_after_a_refused_body_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(perf_counter=lambda: 0.0)  # so that each rest is one turn
    monkeypatch.setattr(work_steps, "time", clock)
    filler = b'{"message_id":"' + b"x" * LARGE_ITEM_BYTES
    good, twice = filler + b'","reason":"COMMIT"', filler + b'","message_id":"y"'
    ends = [batch(each + b',"decision":"COMMIT"}') for each in (good, twice)]
    assert await turns_during(decoded(ends[1])) == await turns_during(decoded(ends[0])) + 2
    single = b'{"decision":"COMMIT",%s' + b" " * LARGE_BYTES + b"}"
    bodies = [single % each for each in (b'"reason":"COMMIT"', b'"decision":"COMMIT"')]
    singles = [decoder().single(request(each), END) for each in bodies]
    turns = [await turns_during(each) for each in singles]
    assert turns[1] == turns[0] + 2


@pytest.mark.usefixtures("every_step_rests")
async def test_an_item_that_no_valid_one_can_be_is_not_decoded() -> None:
    many = b'{"message_id":"x","decision":"COMMIT"' + b',"a":[]' * ITEM_PARTS_MAX + b"}"
    long = b'{"message_id":"' + b"x" * ITEM_MAX + b'"}'
    items = await decoded(batch(GOOD, many, long, GOOD, size=2 * ITEM_MAX))
    assert slugs(items) == ["decoded", "invalid-request", "payload-too-large", "decoded"]


@pytest.mark.usefixtures("every_step_rests")
@pytest.mark.parametrize("unit", [b"{}", b'""', b"[]"])
async def test_a_hostile_batch_takes_little_memory_beside_its_bytes(unit: bytes) -> None:
    body = b'{"items":[' + b",".join([unit] * (8 * ITEM_MAX // 3 - 10)) + b"]}"
    tracemalloc.start()
    try:
        with pytest.raises(Problem) as refused:
            await decoded(body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.slug == "batch-too-large"
    assert most < ITEM_MAX


@pytest.mark.usefixtures("every_step_rests")
async def test_a_large_single_body_with_too_many_parts_is_not_decoded() -> None:
    for body in (b"[" + b"{}," * LARGE_BYTES + b"{}]", b"1],[" + b" " * LARGE_BYTES):
        with pytest.raises(Problem):
            await decoder().single(request(body), END)
    value = b'{"decision":"COMMIT"' + b" " * LARGE_BYTES + b"}"
    assert (await decoder().single(request(value), END)).decision == "COMMIT"


@pytest.mark.usefixtures("every_step_rests")
async def test_tenants_take_turns_with_large_batches() -> None:
    fair, order = decoder(), list[str]()

    async def send(tenant: str) -> None:
        await fair.batch(request(batch(GOOD), tenant), ENDS, spend_nothing)
        order.append(tenant)

    async with asyncio.TaskGroup() as tasks:
        for tenant in ("a", "a", "a", "a", "b"):
            tasks.create_task(send(tenant))
    assert order.index("b") <= 1


@pytest.mark.usefixtures("every_step_rests")
async def test_a_batch_that_waits_for_its_turn_takes_no_room() -> None:
    room = InFlight(2)
    fair = decoder(room)

    async def send() -> None:
        with room:
            await fair.batch(request(batch(GOOD)), ENDS, spend_nothing)

    tasks = [asyncio.create_task(send()) for _ in range(5)]
    await asyncio.sleep(0)
    room.refuse_when_full()
    assert not any(task.done() for task in tasks)
    await asyncio.gather(*tasks)
    with room, room, pytest.raises(Problem):
        room.refuse_when_full()


@pytest.mark.parametrize("size", [1000, LARGE_BYTES])
async def test_the_rate_is_spent_once_the_number_of_items_is_known(size: int) -> None:
    spent = list[int]()

    def spend(items: int) -> None:
        spent.append(items)
        raise Problem(slug="rate-limited")

    with pytest.raises(Problem):
        await decoder().batch(request(batch(GOOD, b"x", size=size)), ENDS, spend)
    assert spent == ([2] if size == LARGE_BYTES else [])


async def test_a_refused_body_waits_also_for_what_its_bytes_cost() -> None:
    task = asyncio.create_task(decoder().single(request(b" " * 3_000_000), END))
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert not task.done()
    task.cancel()
