"""The driver of the Python client, for threads or for asyncio (``fixtures_drivers``).

Of the barriers it has only the checks: tests/integration/client/barrier asks each adapter directly.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from sqlalchemy import Engine, create_engine

from outbox_client import (
    AlreadyEnded,
    Check,
    CheckEndpoint,
    LocalTransactionState,
    Message,
    PreparedMessage,
    PrepareFailed,
    ServiceUnreachable,
    TransactionProducer,
)
from outbox_client.sqlalchemy import SqlAlchemyBarrier
from tests.fixtures_http_server import QuietHandler, http_server
from tests.integration.client.fixtures_producers import open_on_asyncio, open_on_threads

Members = dict[str, Any]
BARRIER = SqlAlchemyBarrier()
SERVERS = ExitStack()
OPEN = {"threads": open_on_threads, "asyncio": open_on_asyncio}[sys.argv[1]]


def send(asked: Members) -> Members:
    """Send a message for each transaction id, all at the same time."""
    with (
        OPEN(asked["url"], asked["group"], timeout=asked["seconds"]) as producer,
        ThreadPoolExecutor(64) as threads,
    ):
        ids = asked["transaction_ids"]
        return {"results": list(threads.map(lambda each: send_one(producer, asked, each), ids))}


def send_one(producer: TransactionProducer, asked: Members, transaction_id: str) -> Members:
    """Send one message; return its outcome."""
    ran = []

    def local(prepared: PreparedMessage) -> LocalTransactionState:
        ran.append(prepared)
        if asked["local"] == "fail":
            raise LookupError("local")
        return LocalTransactionState.COMMIT

    headers = {name: decoded(value) for name, value in asked["headers"].items()}
    message = Message(
        "invoices", decoded(asked["value"]), key=decoded(asked["key"]), headers=headers,
        transaction_id=transaction_id,
    )  # fmt: skip
    followers = [Message("invoices", b64decode(each)) for each in asked["followers"]]
    try:
        sent = producer.send_in_transaction([message, *followers], local, attempts=3)
        outcome = "ended" if sent.end_delivered else "end failed"
    except AlreadyEnded as error:
        won = {"COMMIT": "committed", "ROLLBACK": "rolled back"}
        outcome = "end failed" if ran else won[str(error.winning_decision)]
    except PrepareFailed as error:
        unreachable = isinstance(error.__cause__, ServiceUnreachable)
        outcome = "no answer" if unreachable else "refused"
    except LookupError as error:
        outcome = str(error)
    return {"outcome": outcome, "ran": len(ran)}


def decoded(value: str | None) -> bytes | None:
    """Return the bytes that a command carries."""
    return None if value is None else b64decode(value)


class Listener:
    """Answers one verdict, or from the barrier of a database."""

    def __init__(self, asked: Members) -> None:
        self._verdict = asked.get("verdict")
        self._engine = opened(asked) if asked.get("database") else None

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState | None:
        """Answer a check."""
        if self._engine is not None:
            return BARRIER.check(self._engine, check)
        if self._verdict == "raise":
            raise LookupError("as asked")
        return self._verdict


def serve(asked: Members) -> Members:
    """Answer checks until the driver ends."""
    endpoint = CheckEndpoint(asked["group"], asked["secret"], Listener(asked))

    class Handler(QuietHandler):
        def serve(self) -> None:
            reply = endpoint.handle(dict(self.headers.items()), self.body())
            self.answer(reply.body, reply.status, content_type=reply.content_type)

    return {"url": SERVERS.enter_context(http_server(Handler)) + "/outbox/check"}


def opened(asked: Members) -> Engine:
    """Return a database with the table."""
    scheme = {"sqlite": "sqlite:///", "postgresql": ""}[asked["database"]["kind"]]
    url = asked["database"]["url"].replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(scheme + url)
    BARRIER.create_table(engine)
    return engine


COMMANDS = {"send": send, "serve": serve}


def answer(line: str) -> Members:
    """Do what a line asks."""
    asked = json.loads(line)
    try:
        return COMMANDS[asked["do"]](asked)
    except Exception as error:
        return {"error": str(error)}


for line in sys.stdin:
    sys.stdout.write(json.dumps(answer(line)) + "\n")
    sys.stdout.flush()
