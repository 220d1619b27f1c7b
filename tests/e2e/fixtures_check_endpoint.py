"""A producer's check endpoint on loopback, scripted by the test; it records every check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fixtures_http_server import QuietHandler, http_server

Question = dict[str, Any]
Script = Callable[[Question], str]
"""Returns the decision for one check: COMMIT, ROLLBACK or UNKNOWN."""


@dataclass(slots=True)
class CheckEndpoint:
    """A running endpoint: its address and its recorded checks."""

    url: str
    script: Script
    questions: list[Question] = field(default_factory=list)
    signed_at: list[int] = field(default_factory=list)
    """The signed timestamp of each call (seconds of the epoch)."""
    traceparents: list[str] = field(default_factory=list)
    """The trace context of each call."""

    def asked(self, message_id: str) -> list[int]:
        """Return the attempt numbers of one message's checks, in order."""
        return [q["attempt"] for q in list(self.questions) if q["message_id"] == message_id]


@contextmanager
def check_endpoint(script: Script, bind: str = "127.0.0.1") -> Iterator[CheckEndpoint]:
    """Run an endpoint that answers every check with the result of ``script``."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            question = json.loads(self.body())["data"]
            endpoint.questions.append(question)
            endpoint.signed_at.append(int(self.headers["webhook-timestamp"]))
            decision = endpoint.script(question)
            endpoint.traceparents.append(self.headers["traceparent"])
            self.answer_json({"message_id": question["message_id"], "decision": decision})

    with http_server(Handler, bind) as url:
        endpoint = CheckEndpoint(url=f"{url}/check", script=script)
        yield endpoint
