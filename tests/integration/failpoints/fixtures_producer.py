"""The producer's side of the truth: the decision of each local transaction, and its checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from tests.fixtures_http_server import QuietHandler, http_server

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

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            self.answer(endpoint.answer(self.body()), content_type="application/json")

    with http_server(Handler) as url:
        yield f"{url}/check"
