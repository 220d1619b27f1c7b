"""CheckEndpoint: answers a signed check with a verdict, in threads of its own.

It depends on no web framework: the adapters pass it the headers and the raw body. A repeated
``webhook-id`` is answered again, not refused: after a crash the service may repeat a check with
the same number, and an answer always reflects the current state of the local database.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import monotonic
from types import TracebackType
from typing import Self

from outbox_client.calls.forks import renew_in_children
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
from outbox_client.listener import Check, CheckListener


class CheckEndpoint:
    """Answers the check-backs of one producer group, in any web framework and any thread.

    ``secrets`` is the group's ``check_secret``, or several during a rotation. The listener runs in
    at most ``concurrency`` threads of the endpoint. After nine tenths of the time until
    ``reply_by`` the endpoint stops waiting and answers UNKNOWN. A child of the process has threads
    of its own.
    """

    def __init__(
        self,
        producer_group: str,
        secrets: str | Sequence[str],
        listener: CheckListener,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._requests = SignedRequests(producer_group, secrets)
        self._listener = listener
        self._concurrency = concurrency
        self._is_closed = False
        self._start()
        renew_in_children(self, CheckEndpoint._start)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the listener's running answers and accept no more checks."""
        self._is_closed = True
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _start(self) -> None:
        """Begin with no thread; a child of the process has none of its parent's."""
        self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="outbox-check")
        if self._is_closed:
            self._threads.shutdown()

    def handle(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one call: 401 unsigned, 400 unreadable, 403 for another group, else 200.

        503 while closing: unlike an UNKNOWN, that does not count as a check.
        """
        received = monotonic()
        try:
            request = self._requests.read(headers, body)
        except Refused as refused:
            return refusal(refused.status, refused.title)
        try:
            return reply_of(request, self._verdicts(request, received))
        except RuntimeError:  # the pool starts no more threads
            return refusal(503, "the endpoint is closing")

    def _verdicts(self, request: CheckRequest, received: float) -> list[Verdict]:
        answers = [self._threads.submit(self._ask, check) for check in request.checks]
        wait(answers, timeout=max(0.0, received + seconds_to_answer(request) - monotonic()))
        return [
            _verdict_in_time(check, answer)
            for check, answer in zip(request.checks, answers, strict=True)
        ]

    def _ask(self, check: Check) -> Verdict:
        try:
            return verdict_of(self._listener.check_local_transaction(check))
        except BaseException as error:  # also an exit or a cancellation: this thread is our own
            return failed(check, error)


def _verdict_in_time(check: Check, answer: Future[Verdict]) -> Verdict:
    if answer.done() and not answer.cancelled():
        return answer.result()
    answer.cancel()
    return late(check)
