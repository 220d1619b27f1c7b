"""Turns the many ways in which PostgreSQL can be unavailable into one error."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

from outbox.errors import DatabaseUnavailable, SchemaBehind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


LACKING: Final = (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName)
UNAVAILABLE: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    pg.ReadOnlySqlTransaction,
    pg.IdleInTransactionSessionTimeout,
    pg.TransactionTimeout,
)
"""With the last two PostgreSQL ends the session, too."""


@asynccontextmanager
async def available() -> AsyncIterator[None]:
    """Raise DatabaseUnavailable for every failure of the connection or the server.

    Raises SchemaBehind for a database that lacks what a statement names.
    """
    try:
        yield
    except LACKING as error:
        raise SchemaBehind(str(error).strip().splitlines()[0]) from error
    except UNAVAILABLE as error:
        raise DatabaseUnavailable(type(error).__name__) from error


@contextmanager
def unavailable_on(*errors: type[psycopg.Error], prefix: str = "") -> Iterator[None]:
    """Raise DatabaseUnavailable with the first line of the error's text, for these errors."""
    try:
        yield
    except errors as error:
        raise DatabaseUnavailable(f"{prefix}{str(error).strip().splitlines()[0]}") from error
