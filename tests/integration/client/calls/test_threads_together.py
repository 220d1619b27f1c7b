"""Threads that were answered together are sent together again, and none waits for one that left."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType

import pytest

import outbox_client
from outbox_client import LocalTransactionState, Message, ServiceUnreachable, TransactionProducer
from outbox_client.calls import linger
from outbox_client.calls.linger import Linger
from outbox_client.calls.protocol import Answer
from outbox_client.calls.request_queue import REQUESTS_UNDER_WAY
from outbox_client.calls.shared_items import shared_prepare
from outbox_client.calls.shared_requests import SharedRequests
from outbox_client.calls.transport import Transport
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_contract_server import ContractService, Members

COMMIT = LocalTransactionState.COMMIT
CALLERS = 9
HOUR = 3600.0
LONG = 120.0
CLIENT = str(Path(outbox_client.__file__).parent)


class HeldService(ContractService):
    """Answers no single request before ``release`` is set, and no batch before ``batches`` is."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = Event()

    def answer(self, path: str, body: Members) -> tuple[int, Members, dict[str, str]]:
        if path.endswith("batch"):
            self.batches.wait(30)
        return super().answer(path, body)


@pytest.fixture
def service() -> HeldService:
    """A service whose answers a test holds back."""
    return HeldService()


@pytest.fixture
def requests(service_url: str) -> Iterator[SharedRequests]:
    """The requests of the prepares of one producer."""
    transport = Transport(service_url, None)
    yield SharedRequests(transport, Linger())
    transport.close()


@pytest.fixture
def endless_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request wait for an hour for a caller that is expected, however late it comes."""
    monkeypatch.setattr(linger, "PAUSE", HOUR * 1e6)
    monkeypatch.setattr(linger, "PAUSE_MAX_SECONDS", HOUR)
    monkeypatch.setattr(linger, "FORGOTTEN_SECONDS", HOUR)


def prepare(requests: SharedRequests, number: int, seconds: float = LONG) -> Answer:
    return requests.exchange(shared_prepare("billing", Message("invoices", str(number))), seconds)


@contextmanager
def requests_under_way(
    service: HeldService, send: Callable[[int], object]
) -> Iterator[ThreadPoolExecutor]:
    """Keep so many requests under way that further calls wait, until the block ends.

    Those that wait are answered after them, in one request.
    """
    service.release.clear()
    service.batches.clear()
    with ThreadPoolExecutor(REQUESTS_UNDER_WAY + CALLERS) as threads:
        early: list[Future[object]] = []
        try:
            for number in range(REQUESTS_UNDER_WAY):
                early.append(threads.submit(send, number))
                wait_for_requests(service, number + 1)
            yield threads
        finally:
            service.release.set()
            wait(early)
            service.batches.set()


def wait_for_requests(service: HeldService, count: int) -> None:
    wait_for(lambda: len(service.requests) == count, every=0.002)


def sizes_of(service: HeldService) -> list[int]:
    """Return the number of items of each request, in the order they came."""
    bodies = [body for _, _, body in service.requests]
    return [len(items) if isinstance(items := body.get("items"), list) else 1 for body in bodies]


def ends_in_interrupt(call: Callable[[], object], place: int) -> bool:
    """Interrupt a call where it enters the client's functions for the ``place``-th time.

    There Python looks for signals. Returns False if the call enters fewer functions.
    """
    left = place

    def trace(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        left -= event == "call" and frame.f_code.co_filename.startswith(CLIENT)
        if left == 0:
            sys.settrace(before)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.usefixtures("endless_pause")
def test_the_last_of_those_answered_together_sends_at_once(
    service: HeldService, service_url: str
) -> None:
    """Their ends are one request, although the pause for a caller that stays away is an hour."""
    with TransactionProducer(service_url, "billing", timeout=LONG) as producer:

        def send(number: int) -> str:
            sent = producer.send_in_transaction(Message("invoices", str(number)), lambda _: COMMIT)
            return sent.state

        def early(number: int) -> None:
            producer.prepare(Message("early", str(number)))

        with requests_under_way(service, early) as threads:
            sent = [threads.submit(send, number) for number in range(CALLERS)]
            wait_for(lambda: producer._shared["batch"].waiting() == CALLERS, every=0.002)
        assert {each.result() for each in sent} == {"COMMITTED"}
    assert sizes_of(service) == [1] * REQUESTS_UNDER_WAY + [CALLERS, CALLERS]


def test_an_interrupt_anywhere_lets_later_calls_pass(requests: SharedRequests) -> None:
    """At worst when the time of the interrupted calls is over, at the next attempt."""

    def passes() -> bool:
        try:
            return prepare(requests, 1, seconds=1.0).status == 201
        except ServiceUnreachable:
            return False

    places = 0
    while ends_in_interrupt(lambda: prepare(requests, 0, seconds=0.2), places + 1):
        places += 1
        wait_for(passes)
    assert places > 20
