"""The endpoint of an asynchronous listener verifies, asks and answers as the other one does."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

from outbox_client import AsyncCheckEndpoint, Check, LocalTransactionState, Reply
from tests.unit.outbox_client.fixtures_checks import (
    GROUP,
    SECRET,
    SENT_AT,
    batch,
    make_check,
    signed_headers,
)

COMMIT = LocalTransactionState.COMMIT
SOON = (SENT_AT + timedelta(milliseconds=300)).isoformat()

Answer = Callable[[Check], Awaitable[object]]


class Listener:
    """Returns a given answer, and records the checks."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.running = 0
        self.most_running = 0

    async def check_local_transaction(self, check: Check, /) -> LocalTransactionState | None:
        self.asked.append(check.message_id)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self.answer(check)  # type: ignore[return-value]
        finally:
            self.running -= 1


async def commit(_: Check) -> object:
    await asyncio.sleep(0)
    return COMMIT


async def never(_: Check) -> object:
    await asyncio.Event().wait()
    return None


async def ask(listener: Listener, body: bytes, secret: str = SECRET, **options: int) -> Reply:
    endpoint = AsyncCheckEndpoint(GROUP, SECRET, listener, **options)
    return await endpoint.handle(signed_headers(body, secret), body)


def decisions(reply: Reply) -> list[str]:
    return [verdict["decision"] for verdict in json.loads(reply.body)["verdicts"]]


async def test_an_exception_of_the_listener_means_unknown_for_its_check_alone() -> None:
    async def fail_on_a(check: Check) -> object:
        if check.message_id == "a":
            raise LookupError("host=secret-host")
        return COMMIT

    reply = await ask(Listener(fail_on_a), batch(make_check("a"), make_check("b")))
    assert decisions(reply) == ["UNKNOWN", "COMMIT"]
    assert b"secret-host" not in reply.body


async def test_a_check_that_is_late_is_cancelled_and_unknown_and_delays_no_other() -> None:
    async def slow_on_a(check: Check) -> object:
        return await (never if check.message_id == "a" else commit)(check)

    listener = Listener(slow_on_a)
    reply = await ask(listener, batch(*(make_check(name, reply_by=SOON) for name in "ab")))
    assert decisions(reply) == ["UNKNOWN", "COMMIT"]
    await asyncio.sleep(0)
    assert listener.running == 0


async def test_at_most_so_many_checks_of_a_batch_run_at_a_time() -> None:
    listener = Listener(commit)
    checks = [make_check(str(number)) for number in range(20)]
    reply = await ask(listener, batch(*checks), concurrency=3)
    assert decisions(reply) == ["COMMIT"] * 20
    assert listener.most_running == 3
