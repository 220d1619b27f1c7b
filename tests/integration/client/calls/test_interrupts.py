"""A call that is interrupted, as by Ctrl-C, keeps no later call of its producer waiting."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import outbox_client
from outbox_client import Message, ServiceUnreachable
from outbox_client.calls.linger import Linger
from outbox_client.calls.protocol import Answer
from outbox_client.calls.shared_items import shared_prepare
from outbox_client.calls.shared_requests import SharedRequests
from outbox_client.calls.transport import Transport
from tests.fixtures_waiting import wait_for

CLIENT = str(Path(outbox_client.__file__).parent)


@pytest.fixture
def requests(service_url: str) -> Iterator[SharedRequests]:
    """The requests of the prepares of one producer."""
    transport = Transport(service_url, None)
    yield SharedRequests(transport, Linger())
    transport.close()


def prepare(requests: SharedRequests, number: int, seconds: float) -> Answer:
    return requests.exchange(shared_prepare("billing", Message("invoices", str(number))), seconds)


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
