"""TransactionProducer: prepare, run the local transaction, end, always in that order."""

import ssl
from collections.abc import Callable, Sequence
from threading import Event
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from outbox_client.calls.forks import renew_in_children
from outbox_client.calls.linger import Linger
from outbox_client.calls.producer_calls import ProducerCalls, local_state_of
from outbox_client.calls.shared_items import OPERATIONS
from outbox_client.calls.shared_requests import SharedRequests
from outbox_client.calls.steps import Exchange, Share, Step, Steps
from outbox_client.calls.transport import Transport
from outbox_client.errors import OutboxError
from outbox_client.listener import TransactionListener
from outbox_client.message import (
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    Messages,
    PreparedMessage,
    TransactionSendResult,
)

LocalTransaction = Callable[[PreparedMessage], LocalTransactionState | None]
Result = TypeVar("Result")


class TransactionProducer:
    """Sends messages that are published if, and only if, their local transaction committed.

    A thread-safe context manager. ``timeout`` is the seconds one call may take, including retries.
    Connection failures, 429, 503 and every error the service marks as retryable are retried within
    it, with jitter. ``listener`` is needed only for ``send_in_transaction`` without a callable.
    ``ssl_context`` replaces the public certificate authorities, for a service behind a private one.

    Calls of several threads at the same time share requests: fewer requests, and each call has its
    own result and its own errors. A single call is sent at once. A child of the process
    has connections of its own.

    Raises ValueError for an address or a key that cannot be sent.
    """

    def __init__(
        self,
        url: str,
        producer_group: str,
        api_key: str | None = None,
        listener: TransactionListener | None = None,
        timeout: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._calls = ProducerCalls(producer_group, timeout)
        self._listener = listener
        self._closing = Event()
        self._address = (url, api_key, ssl_context)
        self._open()
        renew_in_children(self, TransactionProducer._leave_to_parent)

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
        """Close the connections; a call that waits for its next attempt fails at once."""
        self._closing.set()
        self._transport.close()

    def _open(self) -> None:
        """Begin with no connection and no call under way."""
        self._transport = Transport(*self._address)
        linger = Linger()
        self._shared = {name: SharedRequests(self._transport, linger) for name in OPERATIONS}

    def _leave_to_parent(self) -> None:
        """Begin again in a child of the process; an open connection is the parent's."""
        was_closed, self._closing = self._closing.is_set(), Event()
        self._open()
        if was_closed:
            self.close()

    def send_in_transaction(
        self,
        message: Messages,
        local_transaction: LocalTransaction | None = None,
        wait: int = 0,
        attempts: int = 1,
    ) -> TransactionSendResult:
        """Prepare ``message``, run the local transaction in this thread, end accordingly.

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
        prepared = self._take(self._calls.prepare_first(message, wait, attempts))
        try:
            local_state = local_state_of(run(prepared), prepared)
        except Exception:
            self._take(self._calls.end_unknown(prepared))
            raise
        return self._take(self._calls.end_quietly(prepared, local_state, wait))

    def prepare(self, message: Messages) -> PreparedMessage:
        """Store a half message, or several under one decision; durable when this returns.

        Raises ``AlreadyEnded`` if an earlier prepare of this message was decided, any other
        ``ServiceError`` of the answer, or ``ServiceUnreachable``: then the local transaction must
        not run. Repeating it with the same message is safe.
        """
        return self._take(self._calls.prepare(message))

    def end(
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
        return self._take(self._calls.end(Ending(message_id, decision, reason), wait))

    def prepare_batch(self, messages: Sequence[Message]) -> list[PreparedMessage | OutboxError]:
        """Store many half messages, each with its own result.

        Returns, in order, the prepared message or the error of each; raises nothing. Long lists
        are split into requests of at most 1 000 items.
        """
        return self._take(self._calls.prepare_batch(messages))

    def end_batch(self, endings: Sequence[Ending], wait: int = 0) -> list[EndResult | OutboxError]:
        """Decide many messages, each with its own result, as ``prepare_batch``."""
        return self._take(self._calls.end_batch(endings, wait))

    def _listener_transaction(self) -> LocalTransaction:
        if self._listener is None:
            raise TypeError("send_in_transaction needs a local_transaction or a listener")
        return self._listener.execute_local_transaction

    def _take(self, steps: Steps[Result]) -> Result:
        """Take the steps of a call, one after the other, in this thread."""
        try:
            step = next(steps)
            while True:
                try:
                    reply = self._reply(step)
                except OutboxError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _reply(self, step: Step) -> Any:
        if isinstance(step, Share):
            return self._shared[step.item.operation].exchange(step.item, step.seconds)
        if isinstance(step, Exchange):
            return self._transport.exchange(step.request, step.seconds)
        return not self._closing.wait(step.seconds)
