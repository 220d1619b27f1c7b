"""TransactionProducer: prepare, run the local transaction, end, always in that order."""

import logging
from collections.abc import Callable, Sequence
from threading import Event
from types import TracebackType
from typing import Self, TypeVar

from outbox_client import protocol
from outbox_client.errors import AlreadyEnded, OutboxError, PrepareFailed
from outbox_client.listener import TransactionListener
from outbox_client.message import (
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    PreparedMessage,
    TransactionSendResult,
)
from outbox_client.protocol import Answer, Request
from outbox_client.retry import Attempts
from outbox_client.transport import Transport

log = logging.getLogger("outbox_client")

LocalTransaction = Callable[[PreparedMessage], LocalTransactionState | None]
Result = TypeVar("Result")

UNKNOWN = LocalTransactionState.UNKNOWN


class TransactionProducer:
    """Sends messages that are published if, and only if, their local transaction committed.

    A thread-safe context manager. ``timeout`` is the seconds one call may take, including retries.
    Connection failures, 429, 503 and every error the service marks as retryable are retried within
    it, with jitter. ``listener`` is needed only for ``send_in_transaction`` without a callable.
    """

    def __init__(
        self,
        url: str,
        producer_group: str,
        api_key: str | None = None,
        listener: TransactionListener | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._producer_group = producer_group
        self._listener = listener
        self._timeout = timeout
        self._closing = Event()
        self._transport = Transport(url, api_key)

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

    def send_in_transaction(
        self,
        message: Message,
        local_transaction: LocalTransaction | None = None,
        wait: int = 0,
    ) -> TransactionSendResult:
        """Prepare ``message``, run the local transaction in this thread, end accordingly.

        Without ``local_transaction`` the listener runs it. ``wait`` is the seconds (0..30) to wait
        for Kafka's acknowledgement of a COMMIT. Raises ``PrepareFailed`` (the local transaction
        did not run) and ``AlreadyEnded`` (a repeated message was decided before, and the local
        transaction did not run; or the final decision contradicts the local state). An exception
        of the local transaction ends with UNKNOWN and propagates unchanged. An end that does not
        reach the service does not raise: the check-back decides the message.
        """
        run = local_transaction or self._listener_transaction()
        prepared = self._prepare_first(message)
        local_state = self._run(run, prepared)
        return self._end_quietly(prepared, local_state, wait)

    def prepare(self, message: Message) -> PreparedMessage:
        """Store a half message; it is durable when this returns.

        Raises ``AlreadyEnded`` if an earlier prepare of this message was decided, any other
        ``ServiceError`` of the answer, or ``ServiceUnreachable``: then the local transaction must
        not run. Repeating it with the same message is safe.
        """
        item = protocol.prepare_item(self._producer_group, message)
        request = protocol.prepare_request(item)
        return self._call(request, lambda answer: protocol.read_prepared(answer, message))

    def end(
        self,
        message_id: str,
        decision: LocalTransactionState,
        reason: str | None = None,
        wait: int = 0,
    ) -> EndResult:
        """Decide a message; UNKNOWN decides nothing and returns the current decision.

        Raises ``AlreadyEnded`` if the opposite was decided, ``MessageNotFound``, any other
        ``ServiceError``, or ``ServiceUnreachable``. Repeating it is safe.
        """
        request = protocol.end_request(Ending(message_id, decision, reason), wait)
        return self._call(request, protocol.read_ended, wait)

    def prepare_batch(self, messages: Sequence[Message]) -> list[PreparedMessage | OutboxError]:
        """Store many half messages, each with its own result.

        Returns, in order, the prepared message or the error of each; raises nothing. Long lists
        are split into requests of at most 1 000 items.
        """
        items = [protocol.prepare_item(self._producer_group, message) for message in messages]
        return self._batch(
            "batch", items, lambda index, answer: protocol.read_prepared(answer, messages[index])
        )

    def end_batch(self, endings: Sequence[Ending], wait: int = 0) -> list[EndResult | OutboxError]:
        """Decide many messages, each with its own result, as ``prepare_batch``."""
        items = [protocol.end_item(ending, with_id=True) for ending in endings]
        return self._batch(
            "end-batch", items, lambda _index, answer: protocol.read_ended(answer), wait
        )

    def _listener_transaction(self) -> LocalTransaction:
        if self._listener is None:
            raise TypeError("send_in_transaction needs a local_transaction or a listener")
        return self._listener.execute_local_transaction

    def _prepare_first(self, message: Message) -> PreparedMessage:
        try:
            return self.prepare(message)
        except AlreadyEnded:
            raise
        except OutboxError as error:
            raise PrepareFailed(message.transaction_id, error) from error

    def _run(self, run: LocalTransaction, prepared: PreparedMessage) -> LocalTransactionState:
        try:
            return _state_of(run(prepared), prepared)
        except Exception:
            self._send_unknown(prepared)
            raise

    def _send_unknown(self, prepared: PreparedMessage) -> None:
        request = protocol.end_request(Ending(prepared.message_id, UNKNOWN), wait=0)
        try:
            self._transport.exchange(request, self._timeout / 2)
        except OutboxError:
            log.warning("end_not_delivered", extra={"message_id": prepared.message_id})

    def _end_quietly(
        self, prepared: PreparedMessage, local_state: LocalTransactionState, wait: int
    ) -> TransactionSendResult:
        ended: EndResult | None = None
        try:
            ended = self.end(prepared.message_id, local_state, wait=wait)
        except AlreadyEnded:
            raise
        except OutboxError as error:
            facts = {"message_id": prepared.message_id, "error": str(error)}
            log.warning("end_not_delivered", extra=facts)
        return TransactionSendResult(
            message_id=prepared.message_id,
            transaction_id=prepared.transaction_id,
            local_state=local_state,
            state=ended.state if ended else prepared.state,
            publication=ended.publication if ended else None,
            end_delivered=ended is not None,
        )

    def _attempts(self, wait: int) -> Attempts:
        return Attempts(
            budget_seconds=self._timeout + wait,
            floor_seconds=min(self._timeout, 1.0) + wait,
            closing=self._closing,
        )

    def _call(self, request: Request, read: Callable[[Answer], Result], wait: int = 0) -> Result:
        attempts = self._attempts(wait)
        while True:
            try:
                return read(self._transport.exchange(request, attempts.attempt_seconds()))
            except OutboxError as error:
                if not attempts.wait_for_retry(error):
                    raise

    def _batch(
        self,
        operation: str,
        items: Sequence[bytes],
        read: Callable[[int, Answer], Result],
        wait: int = 0,
    ) -> list[Result | OutboxError]:
        results: list[Result | OutboxError] = []
        for run in protocol.split_batches(items):
            results += self._send_batch(operation, items, run, read, wait)
        return results

    def _send_batch(
        self,
        operation: str,
        items: Sequence[bytes],
        run: Sequence[int],
        read: Callable[[int, Answer], Result],
        wait: int,
    ) -> list[Result | OutboxError]:
        attempts = self._attempts(wait)
        results: dict[int, Result | OutboxError] = {}
        pending: Sequence[int] = run
        while pending:
            request = protocol.batch_request(operation, [items[i] for i in pending], wait)
            results |= self._attempt(request, pending, read, attempts.attempt_seconds())
            errors = {i: e for i in pending if isinstance(e := results[i], OutboxError)}
            pending = [i for i, error in errors.items() if error.retryable]
            if pending and not attempts.wait_for_retry(errors[pending[0]]):
                break
        return [results[i] for i in run]

    def _attempt(
        self,
        request: Request,
        pending: Sequence[int],
        read: Callable[[int, Answer], Result],
        seconds: float,
    ) -> dict[int, Result | OutboxError]:
        try:
            answer = self._transport.exchange(request, seconds)
            answers = protocol.read_batch(answer, len(pending))
        except OutboxError as error:
            return dict.fromkeys(pending, error)
        return {i: _caught(read, i, answer) for i, answer in zip(pending, answers, strict=True)}


def _caught(
    read: Callable[[int, Answer], Result], index: int, answer: Answer
) -> Result | OutboxError:
    try:
        return read(index, answer)
    except OutboxError as error:
        return error


def _state_of(returned: object, prepared: PreparedMessage) -> LocalTransactionState:
    if returned is None:
        return UNKNOWN
    try:
        return LocalTransactionState(str(returned))
    except ValueError:
        facts = {"message_id": prepared.message_id, "returned": type(returned).__name__}
        log.warning("local_state_not_understood", extra=facts)
        return UNKNOWN
