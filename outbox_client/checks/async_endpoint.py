"""AsyncCheckEndpoint: ``CheckEndpoint`` for a listener that runs on the event loop."""

import asyncio
from collections.abc import Mapping, Sequence

from outbox_client.checks.request import CheckRequest, Refused
from outbox_client.checks.signature import SignedRequests
from outbox_client.checks.verdicts import (
    CONCURRENCY,
    Reply,
    Verdict,
    failed,
    late,
    refusal,
    reply_of,
    seconds_to_answer,
    verdict_of,
)
from outbox_client.listener import AsyncCheckListener, Check


class AsyncCheckEndpoint:
    """Answers the check-backs of one producer group on one event loop.

    ``secrets`` is the group's ``check_secret``, or several during a rotation. At most
    ``concurrency`` calls of the listener run at a time. After nine tenths of the time until
    ``reply_by`` the others are cancelled and answered with UNKNOWN.
    """

    def __init__(
        self,
        producer_group: str,
        secrets: str | Sequence[str],
        listener: AsyncCheckListener,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._requests = SignedRequests(producer_group, secrets)
        self._listener = listener
        self._free = asyncio.Semaphore(concurrency)

    async def handle(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one call: 401 unsigned, 400 unreadable, 403 for another group, else 200."""
        try:
            request = self._requests.read(headers, body)
        except Refused as refused:
            return refusal(refused.status, refused.title)
        return reply_of(request, await self._verdicts(request))

    async def _verdicts(self, request: CheckRequest) -> list[Verdict]:
        answers = [asyncio.create_task(self._ask(check)) for check in request.checks]
        try:
            await asyncio.wait(answers, timeout=max(0.0, seconds_to_answer(request)))
            pairs = zip(request.checks, answers, strict=True)
            return [_verdict_in_time(check, answer) for check, answer in pairs]
        finally:
            for answer in answers:
                answer.cancel()

    async def _ask(self, check: Check) -> Verdict:
        async with self._free:
            try:
                return verdict_of(await self._listener.check_local_transaction(check))
            except Exception as error:
                return failed(check, error)


def _verdict_in_time(check: Check, answer: asyncio.Task[Verdict]) -> Verdict:
    if answer.cancelled():  # by something that the listener waited for
        return failed(check, asyncio.CancelledError())
    return answer.result() if answer.done() else late(check)
