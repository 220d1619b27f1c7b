"""The producer's side of the truth: the decision of each local transaction, and its checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

KINDS = ("commit", "rollback", "silent-commit", "silent-rollback", "unsure")
"""Ended by the producer, or decided only by a check; ``unsure`` answers UNKNOWN first."""


def truth(transaction_id: str) -> str:
    """Return the decision of a transaction, which its name ends with."""
    return "ROLLBACK" if transaction_id.endswith("rollback") else "COMMIT"


class CheckEndpoint:
    """Answers checks and counts them; it exists longer than every process of the service."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """Checks by message id."""
        self._lock = Lock()

    def answer(self, body: bytes) -> bytes:
        """Return the verdict on the one message that is asked about."""
        data = json.loads(body)["data"]
        message_id, transaction_id = data["message_id"], data["transaction_id"]
        with self._lock:
            self.asked[message_id] += 1
            first = self.asked[message_id] == 1
        unsure = first and transaction_id.endswith("unsure")
        decision = "UNKNOWN" if unsure else truth(transaction_id)
        return json.dumps({"message_id": message_id, "decision": decision}).encode()


@contextmanager
def serving(endpoint: CheckEndpoint) -> Iterator[str]:
    """Serve the endpoint for the block; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer = endpoint.answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

        def handle(self) -> None:
            """Serve a connection; a killed caller is not an error."""
            try:
                super().handle()
            except ConnectionError:
                return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/check"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
