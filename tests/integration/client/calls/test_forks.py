"""A child of a process that has sent requests never reads an answer of its parent."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from tests.fixtures_http_server import http_server
from tests.fixtures_waiting import wait_for
from tests.integration.client.fixtures_contract_server import ContractService, contract_handler

PROGRAM = """
import os, sys
from threading import Thread
from outbox_client import Message, ServiceUnreachable, TransactionProducer

def in_child(call):
    child = os.fork()
    if not child:
        try:
            call()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def prepare(name):
    prepared = producer.prepare(Message("invoices", name, transaction_id=name))
    assert prepared.transaction_id == name

producer = TransactionProducer(sys.argv[1], "billing", timeout=10)
"""


HELD = "held"


@pytest.fixture
def ports() -> dict[str, int]:
    """The client's port of each request, by transaction id."""
    return {}


@pytest.fixture
def service_url(service: ContractService, ports: dict[str, int]) -> Iterator[str]:
    """A contract server that notes the connection of each prepare; some it never answers."""
    end = Event()

    class Handler(contract_handler(service)):  # type: ignore[misc]
        def body(self) -> bytes:
            body: bytes = super().body()
            name = json.loads(body)["transaction_id"]
            ports[name] = self.client_address[1]
            if name.startswith(HELD):
                end.wait()
            return body

    with http_server(Handler) as url:
        yield url
        end.set()


def run(url: str, lines: str, ready: Callable[[], bool] = lambda: True) -> None:
    """Run the program with these lines; once ``ready`` it reads a line."""
    command = [sys.executable, "-c", PROGRAM + lines, url]
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **streams) as program:  # type: ignore[call-overload]
        try:
            wait_for(ready)
            _, errors = program.communicate("go on\n", timeout=60)
        finally:
            program.kill()
    assert program.returncode == 0, errors


def test_a_child_uses_connections_of_its_own(service_url: str, ports: dict[str, int]) -> None:
    """Two processes on one connection would read each other's answers."""
    lines = """
prepare("parent")
in_child(lambda: prepare("child"))
prepare("parent again")
"""
    run(service_url, lines)
    assert ports["child"] != ports["parent"] == ports["parent again"]


def test_a_child_waits_for_no_thread_that_stayed_with_its_parent(
    service_url: str, ports: dict[str, int]
) -> None:
    """As the parent sees it, two requests are under way, and no third may start."""
    lines = """
for number in range(2):
    Thread(target=prepare, args=[f"held {number}"], daemon=True).start()
sys.stdin.readline()
in_child(lambda: prepare("child"))
os._exit(0)
"""
    run(service_url, lines, ready=lambda: len(ports) == 2)
    assert "child" in ports
