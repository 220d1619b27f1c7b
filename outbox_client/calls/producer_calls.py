"""The calls of a producer without input or output: what is sent, read, and tried again.

``TransactionProducer`` and ``AsyncTransactionProducer`` take the same steps, so they have one
contract. A call is a generator of steps (``steps``).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from outbox_client.calls import protocol
from outbox_client.calls.protocol import Answer
from outbox_client.calls.retry import Attempts
from outbox_client.calls.shared_items import SharedItem, shared_end, shared_prepare
from outbox_client.calls.steps import Exchange, Pause, Share, Step, Steps
from outbox_client.errors import AlreadyEnded, OutboxError, PrepareFailed
from outbox_client.message import (
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    Messages,
    PreparedMessage,
    TransactionSendResult,
)

log = logging.getLogger("outbox_client")

Result = TypeVar("Result")
UNKNOWN = LocalTransactionState.UNKNOWN


class ProducerCalls:
    """The calls of one producer group; each may take ``timeout`` seconds, including retries."""

    def __init__(self, producer_group: str, timeout: float) -> None:
        self._producer_group = producer_group
        self._timeout = timeout

    def prepare(self, message: Messages) -> Steps[PreparedMessage]:
        """Store a half message, or several under one decision."""
        messages = _listed(message)
        item = shared_prepare(self._producer_group, *messages)
        return self._shared(item, lambda answer: protocol.read_prepared(answer, messages[0]))

    def prepare_first(
        self, message: Messages, wait: int, attempts: int = 1
    ) -> Steps[PreparedMessage]:
        """Store a half message; after a rollback another, up to ``attempts`` in all.

        The second has the transaction id ``ID/2``. Raises ``PrepareFailed``, or ``AlreadyEnded``
        unchanged, and ValueError for a ``wait`` with which its end would be refused.
        """
        protocol.prefer(wait)
        messages = _listed(message)
        first = messages[0].transaction_id
        for attempt in range(2, attempts + 1):
            try:
                return (yield from self._prepare_once(messages))
            except AlreadyEnded as ended:
                if ended.winning_decision != LocalTransactionState.ROLLBACK:
                    raise
            messages[0] = replace(messages[0], transaction_id=f"{first}/{attempt}")
        return (yield from self._prepare_once(messages))

    def _prepare_once(self, messages: Sequence[Message]) -> Steps[PreparedMessage]:
        try:
            return (yield from self.prepare(messages))
        except AlreadyEnded:
            raise
        except OutboxError as error:
            raise PrepareFailed(str(messages[0].transaction_id), error) from error

    def end(self, ending: Ending, wait: int) -> Steps[EndResult]:
        """Decide a message. An end that waits for publication delays no other: it is sent alone."""
        if not wait:
            return self._shared(shared_end(ending), protocol.read_ended)
        request = protocol.end_request(ending, wait)
        return self._retried(lambda seconds: Exchange(request, seconds), protocol.read_ended, wait)

    def end_quietly(
        self, prepared: PreparedMessage, local_state: LocalTransactionState, wait: int
    ) -> Steps[TransactionSendResult]:
        """Decide a message; an end that does not arrive is left to the check-back."""
        ended: EndResult | None = None
        try:
            ended = yield from self.end(Ending(prepared.message_id, local_state), wait)
        except AlreadyEnded:
            raise
        except OutboxError as error:
            _log_undelivered(prepared, error)
        return TransactionSendResult(
            message_id=prepared.message_id,
            transaction_id=prepared.transaction_id,
            local_state=local_state,
            state=ended.state if ended else prepared.state,
            publication=ended.publication if ended else None,
            end_delivered=ended is not None,
        )

    def end_unknown(self, prepared: PreparedMessage) -> Steps[None]:
        """Tell the service, in one attempt, that the local transaction failed; raises nothing."""
        item = shared_end(Ending(prepared.message_id, UNKNOWN))
        try:
            yield Share(item, self._timeout / 2)
        except OutboxError as error:
            _log_undelivered(prepared, error)

    def prepare_batch(
        self, messages: Sequence[Message]
    ) -> Steps[list[PreparedMessage | OutboxError]]:
        """Store many half messages."""
        items = [protocol.prepare_item(self._producer_group, message) for message in messages]
        return self._batch(
            "batch", items, lambda index, answer: protocol.read_prepared(answer, messages[index])
        )

    def end_batch(
        self, endings: Sequence[Ending], wait: int
    ) -> Steps[list[EndResult | OutboxError]]:
        """Decide many messages."""
        items = [protocol.end_item(ending, with_id=True) for ending in endings]
        return self._batch(
            "end-batch", items, lambda _index, answer: protocol.read_ended(answer), wait
        )

    def _shared(self, item: SharedItem, read: Callable[[Answer], Result]) -> Steps[Result]:
        return self._retried(lambda seconds: Share(item, seconds), read, wait=0)

    def _retried(
        self, attempt: Callable[[float], Step], read: Callable[[Answer], Result], wait: int
    ) -> Steps[Result]:
        attempts = self._attempts(wait)
        while True:
            try:
                return read((yield attempt(attempts.attempt_seconds())))
            except OutboxError as error:
                pause = attempts.pause_before_retry(error)
                if pause is None or not (yield Pause(pause)):
                    raise

    def _batch(
        self,
        operation: str,
        items: Sequence[bytes],
        read: Callable[[int, Answer], Result],
        wait: int = 0,
    ) -> Steps[list[Result | OutboxError]]:
        results: list[Result | OutboxError] = []
        for run in protocol.split_batches(items):
            results += yield from self._one_batch(operation, items, run, read, wait)
        return results

    def _one_batch(
        self,
        operation: str,
        items: Sequence[bytes],
        run: Sequence[int],
        read: Callable[[int, Answer], Result],
        wait: int,
    ) -> Steps[list[Result | OutboxError]]:
        attempts = self._attempts(wait)
        results: dict[int, Result | OutboxError] = {}
        pending: Sequence[int] = run
        while pending:
            request = protocol.batch_request(operation, [items[i] for i in pending], wait)
            step = Exchange(request, attempts.attempt_seconds())
            results |= yield from _attempt(step, pending, read)
            errors = {i: e for i in pending if isinstance(e := results[i], OutboxError)}
            pending = [i for i, error in errors.items() if error.retryable]
            pause = attempts.pause_before_retry(errors[pending[0]]) if pending else None
            if pause is None or not (yield Pause(pause)):
                break
        return [results[i] for i in run]

    def _attempts(self, wait: int) -> Attempts:
        return Attempts(
            budget_seconds=self._timeout + wait, floor_seconds=min(self._timeout, 1.0) + wait
        )


def _listed(message: Messages) -> list[Message]:
    """Return the messages of a decision. Raises ValueError if there is none."""
    messages = [message] if isinstance(message, Message) else list(message)
    if not messages:
        raise ValueError("an empty list has no message to prepare")
    return messages


def local_state_of(returned: object, prepared: PreparedMessage) -> LocalTransactionState:
    """Return what a local transaction returned; whatever is not a state is UNKNOWN."""
    if returned is None:
        return UNKNOWN
    try:
        return LocalTransactionState(str(returned))
    except ValueError:
        facts = {"message_id": prepared.message_id, "returned": type(returned).__name__}
        log.warning("local_state_not_understood", extra=facts)
        return UNKNOWN


def _attempt(
    step: Exchange, pending: Sequence[int], read: Callable[[int, Answer], Result]
) -> Steps[dict[int, Result | OutboxError]]:
    try:
        answers = protocol.read_batch((yield step), len(pending))
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


def _log_undelivered(prepared: PreparedMessage, error: OutboxError) -> None:
    facts = {"message_id": prepared.message_id, "error": str(error)}
    log.warning("end_not_delivered", extra=facts)
