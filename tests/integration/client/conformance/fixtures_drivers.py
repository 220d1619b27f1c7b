"""Programs that drive the client of each language: a command a line as JSON, an answer a line.

| command | members | answer |
|---|---|---|
| send | url, group, seconds, transaction_ids, local, and a message | results: outcome, ran |
| serve | group, secret, and verdict or database | url |
| record | database, group, message_id | outcome: recorded, fenced |
| purge | database, group, days | deleted |

A command for a database that a client does not support is answered with an error.

Bytes are base64. The ids of one ``send`` are sent at the same time; ``local`` is what the local
transaction does, commit or fail. A message is key, value, headers and the values of its followers,
which are under the same decision. Outcomes of a send: ended, end failed, committed, rolled back,
refused, no answer, or the error of the local transaction. Any answer may be an ``error``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.languages.fixtures_languages import PLAIN
from tests.fixtures_paths import PROJECT
from tests.unit.outbox_client.fixtures_checks import GROUP, SECRET, signed_headers

Members = dict[str, Any]
PYTHON = (sys.executable, "-P", "-m", "tests.integration.client.conformance.python_driver")


@dataclass(slots=True)
class Driver:
    """A running driver."""

    process: subprocess.Popen[str]
    served: dict[str, str] = field(default_factory=dict)
    """The address of the endpoint for each verdict and database."""

    def ask(self, do: str, **members: object) -> Members:
        """Give a command; return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(
            json.dumps({"do": do, "group": GROUP, **members}), file=self.process.stdin, flush=True
        )
        answer: Members = json.loads(self.process.stdout.readline())
        return answer

    def send(self, url: str, *transaction_ids: str, **members: object) -> list[tuple[str, int]]:
        """Send messages; return the outcome of each, and how often its local transaction ran."""
        given = {"local": "commit", "seconds": 5, "key": None, "value": b64(b"v"), "headers": {}}
        given |= {"followers": []}
        answer = self.ask("send", url=url, transaction_ids=transaction_ids, **given | members)
        return [(each["outcome"], each["ran"]) for each in answer["results"]]

    def serve(self, **members: object) -> str:
        """Serve checks; return the address of the endpoint."""
        asked = json.dumps(members)
        if asked not in self.served:
            self.served[asked] = self.ask("serve", secret=SECRET, **members)["url"]
        return self.served[asked]

    def check(
        self, body: bytes, headers: Mapping[str, str] | None = None, **served: object
    ) -> httpx2.Response:
        """Send a check, signed unless it has headers, to an endpoint."""
        headers = signed_headers(body) if headers is None else headers
        return httpx2.post(self.serve(**served), content=body, headers=headers, timeout=60)


def b64(value: bytes) -> str:
    """Return bytes as a command carries them."""
    return b64encode(value).decode()


def python_driver(kind: str) -> AbstractContextManager[Driver]:
    """Run the driver of a Python client."""
    return driver_of((*PYTHON, kind), PROJECT, PYTHONPATH=str(PROJECT))


@contextmanager
def driver_of(command: Sequence[str], place: Path, **environment: str) -> Iterator[Driver]:
    """Run a driver for the block."""
    with subprocess.Popen(
        command,
        cwd=place,
        env=PLAIN | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Driver(process)
        finally:
            process.kill()
