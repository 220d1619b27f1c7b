"""Items that may share a request with others, and how each finds its own answer; without I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from outbox_client.calls import protocol
from outbox_client.calls.protocol import Answer, Request
from outbox_client.errors import OutboxError, ServiceUnreachable
from outbox_client.message import Ending, Message

PREPARE: Final = "batch"
END: Final = "end-batch"
OPERATIONS: Final = (PREPARE, END)

ABOUT_THE_REQUEST: Final = frozenset({400, 413, 415, 422, 429})
"""Statuses of a whole batch that one item of it, or their number, may have caused."""

SEND_ALONE: Final = Answer(status=0, headers={}, body=b"")
"""In place of an answer: the batch was refused, so each of its items is sent alone."""

Reply = Answer | OutboxError


@dataclass(frozen=True, slots=True)
class SharedItem:
    """One item: as a part of a batch (``body``), and as a request of its own (``alone``)."""

    operation: str
    body: bytes
    alone: Callable[[], Request]
    messages: int = 1
    """How many messages it counts for in a batch."""


def shared_prepare(producer_group: str, *messages: Message) -> SharedItem:
    """Return the item that prepares the messages, under one decision if there are several."""
    body = protocol.prepare_item(producer_group, *messages)
    return SharedItem(PREPARE, body, lambda: protocol.prepare_request(body), len(messages))


def shared_end(ending: Ending) -> SharedItem:
    """Return the item that decides a message, without waiting for its publication."""
    body = protocol.end_item(ending, with_id=True)
    return SharedItem(END, body, lambda: protocol.end_request(ending, wait=0))


def shared_request(items: Sequence[SharedItem]) -> Request:
    """Return the request of ``items``, which have one operation; a batch if there are several."""
    if len(items) == 1:
        return items[0].alone()
    return protocol.batch_request(items[0].operation, [item.body for item in items])


def read_shared(answer: Answer, count: int) -> Sequence[Reply]:
    """Return the reply to each of the ``count`` items of a shared request."""
    if count == 1:
        return [answer]
    if answer.status in ABOUT_THE_REQUEST:
        return [SEND_ALONE] * count
    if answer.status != 207:
        return [answer] * count
    try:
        return protocol.read_batch(answer, count)
    except OutboxError as error:
        return one_error_each(error, count)


def one_error_each(error: OutboxError, count: int) -> Sequence[Reply]:
    """Return an error for each of ``count`` callers: a raised error belongs to one of them."""
    return [type(error)(*error.args) for _ in range(count)]


def interrupted(count: int) -> Sequence[Reply]:
    """Return the replies to a request whose sender was stopped before the answer came."""
    error = ServiceUnreachable("the request was interrupted before its answer came")
    return one_error_each(error, count)
