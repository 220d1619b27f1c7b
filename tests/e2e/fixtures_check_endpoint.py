"""A producer's check endpoint on loopback, scripted by the test; it records every check."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            question = json.loads(body)["data"]
            endpoint.questions.append(question)
            endpoint.signed_at.append(int(self.headers["webhook-timestamp"]))
            decision = endpoint.script(question)
            endpoint.traceparents.append(self.headers["traceparent"])
            answer = {"message_id": question["message_id"], "decision": decision}
            payload = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer((bind, 0), Handler)
    server.daemon_threads = True
    endpoint = CheckEndpoint(url=f"http://127.0.0.1:{server.server_port}/check", script=script)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
