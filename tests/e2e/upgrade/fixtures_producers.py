"""Producers that never stop: each asks any API that answers until it has its answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2

from tests.fixtures_waiting import wait_for

PRODUCERS = 4
ROLLED_BACK_EACH = 7
LEFT_OPEN_EACH = 11
"""Of so many messages one is rolled back, and one is left to the checks."""
PATIENCE = 600
"""Tries of one request; between two of them is a tenth of a second."""


@dataclass(slots=True)
class Load:
    """What the producers did: values by what the API acknowledged."""

    addresses: list[str]
    group: str
    topic: str
    committed: list[str] = field(default_factory=list)
    rolled_back: list[str] = field(default_factory=list)
    left_open: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def go_on(self, messages: int = 120) -> None:
        """Wait until so many more commits were acknowledged."""
        goal = len(self.committed) + messages
        wait_for(lambda: self.failures or len(self.committed) >= goal, seconds=120)
        assert not self.failures

    def produce(self, key: str) -> None:
        """Prepare and end messages of one key, one after the other, until the load stops."""
        try:
            with httpx2.Client(timeout=30, trust_env=False) as http:
                for number in count():
                    if self.stop.is_set():
                        return
                    self._message(http, key, number)
        except AssertionError as error:
            self.failures.append(str(error))

    def _message(self, http: httpx2.Client, key: str, number: int) -> None:
        value = f"{key}:{number}"
        is_open = number % LEFT_OPEN_EACH == LEFT_OPEN_EACH - 1
        prepared = self._ask(
            http,
            "/v1/half-messages",
            {
                "producer_group": self.group,
                "topic": self.topic,
                "transaction_id": value,
                "key": "checked" if is_open else key,
                "value": value,
            },
        )
        if is_open:
            self.left_open.append(value)
            return
        decision = "ROLLBACK" if number % ROLLED_BACK_EACH == 0 else "COMMIT"
        path = f"/v1/half-messages/{prepared['message_id']}/end"
        self._ask(http, path, {"decision": decision})
        (self.committed if decision == "COMMIT" else self.rolled_back).append(value)

    def _ask(self, http: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Repeat a request at each address in turn until one acknowledges it."""
        said = "no answer"
        for attempt in range(PATIENCE):
            addresses = list(self.addresses)
            try:
                answer = http.post(addresses[attempt % len(addresses)] + path, json=body)
            except httpx2.TransportError as error:
                said = repr(error)
            else:
                if answer.status_code in (200, 201):
                    found: dict[str, Any] = answer.json()
                    return found
                said = answer.text
                assert answer.status_code == 503, said
            self.stop.wait(0.1)
        raise AssertionError(f"{path}: {said}")


@contextmanager
def running(load: Load) -> Iterator[Load]:
    """Run the producers, each with a key of its own, until the block ends."""
    threads = [
        threading.Thread(target=load.produce, args=(f"key-{number}",))
        for number in range(PRODUCERS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.stop.set()
        for thread in threads:
            thread.join(timeout=120)
    assert not load.failures
