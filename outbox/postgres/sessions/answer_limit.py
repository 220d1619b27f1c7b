"""Connections that do not wait for ever for an answer.

A server that is stopped, and a network or a proxy that holds what is sent, still look alive to TCP:
somebody acknowledges each byte. So the silence of a server has a limit. After it the socket is
closed; whether the statement took effect is unknown.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.waiting import wait_async

if TYPE_CHECKING:
    from psycopg.abc import PQGen

ANSWER_SECONDS: Final = 600.0
"""Longest silence of the server during an exchange, where no shorter one is set: longer than any
statement of maintenance takes on a large installation."""
POLL_SECONDS: Final = 0.1
"""How often an exchange looks at the clock; psycopg's own interval."""
RV = TypeVar("RV")


class NoAnswer(psycopg.OperationalError):
    """PostgreSQL did not answer in time; whether the statement took effect is unknown."""


class _Limited:
    """What both kinds of connections know of their limit."""

    pgconn: Any
    answer_seconds: float | None = None
    """Longest silence of the server during an exchange; None means ANSWER_SECONDS."""

    @contextmanager
    def answering_within(self, seconds: float) -> Iterator[None]:
        """Wait at most so long for each answer in the block."""
        usual, self.answer_seconds = self.answer_seconds, seconds
        try:
            yield
        finally:
            self.answer_seconds = usual

    def _limited(self, gen: PQGen[RV]) -> PQGen[RV]:
        """Pass an exchange on; after too long a silence close the socket and raise NoAnswer."""
        seconds = ANSWER_SECONDS if self.answer_seconds is None else self.answer_seconds
        heard = monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = monotonic()
                wanted = gen.send(ready)
                if monotonic() - heard >= seconds:
                    break
        except StopIteration as done:
            answer: RV = done.value
            return answer
        self.pgconn.finish()
        raise NoAnswer(f"PostgreSQL gave no answer within {seconds:g} s")


class LimitedAsyncConnection(_Limited, psycopg.AsyncConnection[Any]):
    """An asynchronous connection whose exchanges are limited."""

    unconfirmed: list[str]
    """Warnings of waits for a standby that were given up; see ``sync_replication``."""
    lent_at: float = 0.0
    """When its pool lent it last, by the monotonic clock."""
    shards: int | None = None
    """The number of shards in use, once the session has the prepared statements of a flush."""

    async def wait(
        self, gen: PQGen[RV], interval: float = POLL_SECONDS, timeout: float | None = None
    ) -> RV:
        """Run an exchange; psycopg makes every one through this method. Raises NoAnswer.

        psycopg lets a cancelled one ask the server to cancel the statement, which takes ten seconds
        if that is silent. Here the socket is closed.
        """
        limited = self._limited(gen)
        try:
            return await wait_async(limited, self.pgconn.socket, interval, timeout)
        except CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


class LimitedConnection(_Limited, psycopg.Connection[Any]):
    """A connection whose exchanges are limited."""

    def wait(
        self, gen: PQGen[RV], interval: float = POLL_SECONDS, timeout: float | None = None
    ) -> RV:
        """Run an exchange; psycopg makes every one through this method. Raises NoAnswer."""
        return super().wait(self._limited(gen), interval, timeout)
