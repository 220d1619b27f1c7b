"""A session of the relay with PostgreSQL, for one thread; when it breaks, what was read is void."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import LiteralString

import psycopg

from outbox.postgres.sessions.availability import unavailable
from outbox.postgres.sessions.connections import Connection


class RelaySession:
    """Opens its session when it is used first, and again after it broke."""

    def __init__(
        self,
        database_url: str,
        program: str,
        connect: Callable[[str, str], Connection],
        first: LiteralString = "",
    ) -> None:
        self._url = database_url
        self._program = program
        self._connect = connect
        self._first = first
        """The first statement of each session."""
        self._connection: Connection | None = None

    def close(self) -> None:
        """Close the session, which frees its locks; never raises."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """Lend the session, and open it if needed; any error of PostgreSQL closes it."""
        try:
            if self._connection is None:
                self._connection = self._connect(self._url, self._program)
                self._connection.execute(self._first)
            yield self._connection
        except psycopg.Error as error:
            self.close()
            raise unavailable(error) from error
