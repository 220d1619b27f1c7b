"""AsyncTransactionProducer: ``TransactionProducer`` for asyncio, with the same contract."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from outbox_client.calls.async_shared_requests import AsyncSharedRequests
from outbox_client.calls.async_transport import AsyncTransport
from outbox_client.calls.producer_calls import ProducerCalls, local_state_of
from outbox_client.calls.protocol import BATCH_MAX_ITEMS
from outbox_client.calls.request_queue import REQUESTS_UNDER_WAY
from outbox_client.calls.shared_items import END, OPERATIONS, PREPARE
from outbox_client.calls.steps import Exchange, Share, Step, Steps
from outbox_client.errors import OutboxError
from outbox_client.listener import AsyncTransactionListener
from outbox_client.message import (
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    Messages,
    PreparedMessage,
    TransactionSendResult,
)

LocalTransaction = Callable[[PreparedMessage], Awaitable[LocalTransactionState | None]]
Result = TypeVar("Result")


CALLS_AT_ONCE: Final = 2 * REQUESTS_UNDER_WAY * BATCH_MAX_ITEMS
"""As many as are sent together, and the same number that waits for those."""


class AsyncTransactionProducer:
    """Sends messages that are published if, and only if, their local transaction committed.

    An asynchronous context manager for the tasks of one event loop. ``timeout`` is the
    seconds one call may take, including retries. Connection failures, 429, 503 and every error the
    service marks as retryable are retried within it, with jitter. ``listener`` is needed only for
    ``send_in_transaction`` without a callable; both are asynchronous functions. ``ssl_context``
    replaces the public certificate authorities, for a service behind a private one.

    Calls of several tasks at the same time share requests: fewer requests, and each call has its
    own result and its own errors. A single call is sent at once. Any number of calls may be
    gathered: of prepares, and of ends, those beyond 4 000 wait for a turn, and ``timeout`` begins
    with it.

    Raises ValueError for an address or a key that cannot be sent, and RuntimeError in another event
    loop than that of the first call.
    """

    def __init__(
        self,
        url: str,
        producer_group: str,
        api_key: str | None = None,
        listener: AsyncTransactionListener | None = None,
        timeout: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._calls = ProducerCalls(producer_group, timeout)
        self._listener = listener
        self._closing = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport = AsyncTransport(url, api_key, ssl_context)
        self._shared = {name: AsyncSharedRequests(self._transport) for name in OPERATIONS}
        self._turns = {name: asyncio.Semaphore(CALLS_AT_ONCE) for name in OPERATIONS}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; every call that still waits fails at once."""
        self._closing.set()
        await self._transport.close()
        for requests in self._shared.values():
            await requests.close()

    async def send_in_transaction(
        self,
        message: Messages,
        local_transaction: LocalTransaction | None = None,
        wait: int = 0,
        attempts: int = 1,
    ) -> TransactionSendResult:
        """Prepare ``message``, run the local transaction, end accordingly.

        Without ``local_transaction`` the listener runs it. ``wait`` is the seconds (0..30) to wait
        for Kafka's acknowledgement of a COMMIT. Raises ``PrepareFailed`` (the local transaction
        did not run) and ``AlreadyEnded`` (a repeated message was decided before, and the local
        transaction did not run; or the final decision contradicts the local state). An exception
        of the local transaction ends with UNKNOWN and propagates unchanged. An end that does not
        reach the service does not raise: the check-back decides the message. Any other ``wait``
        raises ValueError before anything is sent.

        A ``transaction_id`` of your business that was rolled back stays so. ``attempts`` is how
        many messages may be prepared for it: after a rollback the second as ``ID/2``, and so on.

        ``message`` may be a list of up to 100: all are published or none. The ``transaction_id``
        and ``check_immunity_seconds`` are those of the first, whose id is ended and checked.
        """
        run = local_transaction or self._listener_transaction()
        prepared = await self._take(PREPARE, self._calls.prepare_first(message, wait, attempts))
        try:
            local_state = local_state_of(await run(prepared), prepared)
        except Exception:
            await self._take(END, self._calls.end_unknown(prepared))
            raise
        return await self._take(END, self._calls.end_quietly(prepared, local_state, wait))

    async def prepare(self, message: Messages) -> PreparedMessage:
        """Store a half message, or several under one decision; durable when this returns.

        Raises ``AlreadyEnded`` if an earlier prepare of this message was decided, any other
        ``ServiceError`` of the answer, or ``ServiceUnreachable``: then the local transaction must
        not run. Repeating it with the same message is safe.
        """
        return await self._take(PREPARE, self._calls.prepare(message))

    async def end(
        self,
        message_id: str | UUID,
        decision: LocalTransactionState,
        reason: str | None = None,
        wait: int = 0,
    ) -> EndResult:
        """Decide a message; UNKNOWN decides nothing and returns the current decision.

        Raises ``AlreadyEnded`` if the opposite was decided, ``MessageNotFound``, any other
        ``ServiceError``, or ``ServiceUnreachable``. Repeating it is safe.
        """
        return await self._take(END, self._calls.end(Ending(message_id, decision, reason), wait))

    async def prepare_batch(
        self, messages: Sequence[Message]
    ) -> list[PreparedMessage | OutboxError]:
        """Store many half messages, each with its own result.

        Returns, in order, the prepared message or the error of each; raises nothing. Long lists
        are split into requests of at most 1 000 items.
        """
        return await self._take(PREPARE, self._calls.prepare_batch(messages))

    async def end_batch(
        self, endings: Sequence[Ending], wait: int = 0
    ) -> list[EndResult | OutboxError]:
        """Decide many messages, each with its own result, as ``prepare_batch``."""
        return await self._take(END, self._calls.end_batch(endings, wait))

    def _listener_transaction(self) -> LocalTransaction:
        if self._listener is None:
            raise TypeError("send_in_transaction needs a local_transaction or a listener")
        return self._listener.execute_local_transaction

    async def _take(self, operation: str, steps: Steps[Result]) -> Result:
        """Take the steps of a call, one after the other; its time begins with its turn.

        An end never waits behind prepares: they may be those of later messages.
        """
        self._refuse_another_loop()
        async with self._turns[operation]:
            return await self._take_now(steps)

    async def _take_now(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    reply = await self._reply(step)
                except OutboxError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _refuse_another_loop(self) -> None:
        """Raise RuntimeError if the first call was made in another loop: it has the connections."""
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if loop is not self._loop:
            raise RuntimeError("the producer belongs to another event loop: open one in each loop")

    async def _reply(self, step: Step) -> Any:
        if isinstance(step, Share):
            return await self._shared[step.item.operation].exchange(step.item, step.seconds)
        if isinstance(step, Exchange):
            return await self._transport.exchange(step.request, step.seconds)
        return not await self._closes_within(step.seconds)

    async def _closes_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return False
        return True
