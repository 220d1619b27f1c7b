"""Calls wait only while a request is under way, and are sent in the order they came."""

from dataclasses import dataclass

from outbox_client.calls.protocol import BATCH_MAX_BYTES, BATCH_MAX_ITEMS, Request
from outbox_client.calls.request_queue import RequestQueue
from outbox_client.calls.shared_items import PREPARE, SharedItem

NOW = 1000.0


@dataclass(eq=False)
class Call:
    item: SharedItem
    deadline: float = NOW + 10


def make_call(body: bytes = b"{}", messages: int = 1) -> Call:
    return Call(SharedItem(PREPARE, body, lambda: Request(path="/", body=body), messages))


def make_queue(*calls: Call, most_requests: int = 1) -> RequestQueue[Call]:
    queue: RequestQueue[Call] = RequestQueue(most_requests)
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


def test_a_request_that_never_ends_is_forgotten_when_the_time_of_all_its_calls_is_over() -> None:
    """Whoever sent it was stopped by an interrupt, and could not say so."""
    short, long = make_call(), make_call()
    long.deadline = NOW + 20
    queue = make_queue(short, long)
    queue.start_request(NOW)
    later = make_call()
    queue.add(later)
    assert queue.start_request(NOW + 15) == []
    assert queue.start_request(NOW + 20) == [later]
    assert not queue.end_request([short, long])


def test_a_call_that_was_withdrawn_is_not_sent() -> None:
    gone, stays = make_call(), make_call()
    queue = make_queue(gone, stays)
    assert queue.withdraw(gone)
    assert queue.start_request(NOW) == [stays]
    assert not queue.withdraw(stays)


def test_a_request_takes_at_most_the_messages_of_a_batch_and_the_oldest_first() -> None:
    calls = [make_call(messages=2) for _ in range(BATCH_MAX_ITEMS // 2 + 1)]
    queue = make_queue(*calls, most_requests=2)
    assert queue.start_request(NOW) == calls[:-1]
    assert queue.start_request(NOW) == calls[-1:]


def test_a_request_takes_at_most_the_bytes_of_a_batch() -> None:
    large = b"x" * (BATCH_MAX_BYTES // 2)
    calls = [make_call(large) for _ in range(3)]
    queue = make_queue(*calls, most_requests=3)
    assert [len(queue.start_request(NOW)) for _ in range(3)] == [1, 1, 1]
