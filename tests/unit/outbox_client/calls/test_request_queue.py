"""Calls wait only while a request is under way, and are sent in the order they came."""

from dataclasses import dataclass

from outbox_client.calls.protocol import BATCH_MAX_BYTES, Request
from outbox_client.calls.request_queue import RequestQueue
from outbox_client.calls.shared_items import PREPARE, SharedItem

NOW = 1000.0


@dataclass(eq=False)
class Call:
    item: SharedItem
    deadline: float = NOW + 10


def make_call(body: bytes = b"{}") -> Call:
    return Call(SharedItem(PREPARE, body, lambda: Request(path="/", body=body), 1))


def make_queue(*calls: Call) -> RequestQueue[Call]:
    queue: RequestQueue[Call] = RequestQueue(len(calls))
    for call in calls:
        queue.add(call)
    return queue


def test_a_call_is_sent_at_once_and_those_that_come_meanwhile_together_after_it() -> None:
    first, second, third = make_call(), make_call(), make_call()
    queue = make_queue(first)
    assert queue.start_request(NOW) == [first]
    queue.add(second)
    queue.add(third)
    assert queue.start_request(NOW) == []
    assert queue.end_request([first])
    assert not queue.end_request([first])
    assert queue.start_request(NOW) == [second, third]


def test_a_call_that_was_withdrawn_is_not_sent() -> None:
    gone, stays = make_call(), make_call()
    queue = make_queue(gone, stays)
    assert queue.withdraw(gone)
    assert queue.start_request(NOW) == [stays]
    assert not queue.withdraw(stays)


def test_a_request_takes_at_most_the_bytes_of_a_batch() -> None:
    large = b"x" * (BATCH_MAX_BYTES // 2)
    calls = [make_call(large) for _ in range(3)]
    queue = make_queue(*calls)
    assert [len(queue.start_request(NOW)) for _ in range(3)] == [1, 1, 1]
