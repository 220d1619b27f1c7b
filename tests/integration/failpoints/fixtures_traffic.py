"""Producers that work while processes are killed: a call without an answer is repeated.

A producer repeats a prepare with the same transaction id, and an end with the same decision, until
it gets an answer. The answers are kept for the verdict.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import httpx2
import psycopg

from outbox.messages.message_id import HalfId, parse_message_id
from outbox.postgres.sessions.connections import Connection
from tests.fixtures_plain_http import NO_TLS
from tests.integration.failpoints.fixtures_producer import KINDS, truth

GROUP = "failpoints"
PRODUCERS = 6
PAUSE_SECONDS = 0.03
PATIENCE_SECONDS = 120.0
SQL_MODE = "sql"
"""A transaction that its own commit in PostgreSQL decides."""
PUBLISH = "SELECT outbox.publish(%s, %s, %s, key => %s, transaction_id => %s)"
LARGE_VALUE = "x" * 5000
"""More than the small topic accepts while its limit is lowered."""


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One local transaction and all answers of the service about it."""

    id: str
    kind: str
    topic: str
    key: str
    value: str
    message_ids: set[str] = field(default_factory=set)
    decisions: set[str] = field(default_factory=set)
    """The decisions in the answers."""

    @property
    def half_id(self) -> HalfId:
        """The half that the service answered with."""
        (message_id,) = self.message_ids
        return parse_message_id(message_id)[0]

    @property
    def is_ended(self) -> bool:
        """Whether its producer ends it."""
        return self.kind in ("commit", "rollback")

    @property
    def is_in_order(self) -> bool:
        """Whether its producer commits it after its previous one."""
        return self.is_ended or self.kind == SQL_MODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Where messages go: one topic accepts all, one refuses large messages for a time."""

    usual: str
    small: str


class Traffic:
    """Several producers, each with one key, which work until they are stopped."""

    def __init__(
        self, url: str, name: str, topics: Topics, sql_database_url: str | None = None
    ) -> None:
        """``name`` distinguishes this traffic's transactions from all others.

        With a database URL one more producer publishes there in its own transactions.
        """
        self.transactions: list[Transaction] = []
        self.large = threading.Event()
        """While set, some messages are too large for their topic."""
        self._url, self._name, self._topics = url, name, topics
        self._stop, self._abandon = threading.Event(), threading.Event()
        self._numbers = count()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._produce, args=(n,), daemon=True) for n in range(PRODUCERS)
        ]
        if sql_database_url is not None:
            sql_mode = threading.Thread(target=self._publish, args=(sql_database_url,), daemon=True)
            self._threads.append(sql_mode)

    def start(self) -> None:
        """Start the producers."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Start nothing new and wait until every call is answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "a producer got no answer"
        if self._errors:
            raise self._errors[0]

    def abandon(self) -> None:
        """Stop at once, with or without answers."""
        self._stop.set()
        self._abandon.set()

    def repeat(self) -> None:
        """Repeat all calls, as a client that lost the answers: the answers must be the same."""
        with self._client() as client:
            for transaction in self.transactions:
                if transaction.kind == SQL_MODE:
                    continue
                self._prepare(client, transaction)
                if transaction.is_ended:
                    self._end(client, transaction, truth(transaction.id))

    def _produce(self, number: int) -> None:
        try:
            with self._client() as client:
                while not self._stop.is_set():
                    self._transact(client, self._next(number))
                    self._stop.wait(PAUSE_SECONDS)
        except BaseException as error:
            self._errors.append(error)

    def _publish(self, database_url: str) -> None:
        try:
            with psycopg.connect(database_url, autocommit=True) as session:
                while not self._stop.is_set():
                    self._publish_one(session)
                    self._stop.wait(PAUSE_SECONDS)
        except BaseException as error:
            self._errors.append(error)

    def _publish_one(self, session: Connection) -> None:
        n, key = next(self._numbers), f"{self._name}-{SQL_MODE}"
        transaction = Transaction(
            id=f"{self._name}-{n}-{SQL_MODE}",
            kind=SQL_MODE,
            topic=self._topics.usual,
            key=key,
            value=f"{n}:",
        )
        self.transactions.append(transaction)
        asked = (GROUP, transaction.topic, transaction.value.encode(), key, transaction.id)
        row = session.execute(PUBLISH, asked).fetchone()
        assert row is not None
        transaction.message_ids.add(str(row[0]))

    def _next(self, producer: int) -> Transaction:
        n = next(self._numbers)
        kind = KINDS[n % len(KINDS)]
        large = self.large.is_set() and kind == "commit"
        transaction = Transaction(
            id=f"{self._name}-{n}-{kind}",
            kind=kind,
            topic=self._topics.small if large else self._topics.usual,
            key=f"{self._name}-{producer}",
            value=f"{n}:{LARGE_VALUE if large else ''}",
        )
        self.transactions.append(transaction)
        return transaction

    def _transact(self, client: httpx2.Client, transaction: Transaction) -> None:
        self._prepare(client, transaction)
        if transaction.is_ended:
            decision = truth(transaction.id)
            self._end(client, transaction, decision)
            self._end(client, transaction, "ROLLBACK" if decision == "COMMIT" else "COMMIT")

    def _prepare(self, client: httpx2.Client, transaction: Transaction) -> None:
        answer = self._answered(
            lambda: client.post(
                "/v1/half-messages",
                json={
                    "producer_group": GROUP,
                    "topic": transaction.topic,
                    "key": transaction.key,
                    "value": transaction.value,
                    "transaction_id": transaction.id,
                },
            )
        )
        if answer is not None:
            assert answer.status_code in (201, 409), answer.text
            transaction.message_ids.add(answer.json()["message_id"])
            if answer.status_code == 409:
                transaction.decisions.add(answer.json()["winning_decision"])

    def _end(self, client: httpx2.Client, transaction: Transaction, decision: str) -> None:
        if not transaction.message_ids:
            return
        path = f"/v1/half-messages/{min(transaction.message_ids)}/end"
        answer = self._answered(lambda: client.post(path, json={"decision": decision}))
        if answer is not None:
            assert answer.status_code in (200, 409), answer.text
            named = "decision" if answer.status_code == 200 else "winning_decision"
            transaction.decisions.add(answer.json()[named])

    def _answered(self, call: Callable[[], httpx2.Response]) -> httpx2.Response | None:
        """Call until there is an answer; None when the traffic was abandoned."""
        while not self._abandon.is_set():
            try:
                answer = call()
            except httpx2.TransportError:
                self._abandon.wait(PAUSE_SECONDS)
                continue
            if answer.status_code < 500:
                return answer
            self._abandon.wait(PAUSE_SECONDS)
        return None

    def _client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self._url, timeout=10.0, verify=NO_TLS)
