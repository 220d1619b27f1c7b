"""Turns the many ways in which PostgreSQL can be unavailable into one error."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

from outbox.errors import DatabaseRefused, DatabaseUnavailable, SchemaBehind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

LACKING: Final = (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName)
RIGHTS_LOST: Final = (pg.InsufficientPrivilege, pg.UndefinedObject)
"""Also where the role of a session was created anew: only a new login has its rights."""
REFUSED: Final = (*RIGHTS_LOST, pg.RaiseException)
"""What administrators and the triggers of other programs raise; no defect of a statement."""
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

    Raises SchemaBehind for a database that lacks what a statement names, and DatabaseRefused for
    one that does not let us run it.
    """
    try:
        yield
    except LACKING as error:
        raise SchemaBehind(_first_line(error)) from error
    except (*REFUSED, *UNAVAILABLE) as error:
        raise unavailable(error) from error


@asynccontextmanager
async def lent(pool: AnyPool) -> AsyncIterator[AsyncConnection]:
    """Lend a connection of a pool for the block; raises as ``available`` does."""
    async with available(), pool.connection() as connection:
        yield connection


@asynccontextmanager
async def transaction(pool: AnyPool) -> AsyncIterator[AsyncConnection]:
    """Lend a connection whose work is committed at the end of the block."""
    async with lent(pool) as connection, connection.transaction():
        yield connection


def unavailable(error: psycopg.Error) -> DatabaseUnavailable:
    """Return the error for one of PostgreSQL's, with the first line of its words."""
    if isinstance(error, REFUSED):
        reason = error.diag.message_primary or type(error).__name__
        return DatabaseRefused(f"PostgreSQL refuses: {reason}")
    words = (error.diag.message_primary or str(error)).strip().partition("\n")[0]
    return DatabaseUnavailable(
        f"{type(error).__name__}: {words}" if words else type(error).__name__
    )


@contextmanager
def unavailable_on(*errors: type[psycopg.Error], prefix: str = "") -> Iterator[None]:
    """Raise DatabaseUnavailable with the first line of the error's text, for these errors.

    Raises SchemaBehind for a database that lacks what a statement names.
    """
    try:
        yield
    except LACKING as error:
        raise SchemaBehind(_first_line(error)) from error
    except errors as error:
        raise DatabaseUnavailable(f"{prefix}{_first_line(error)}") from error


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().splitlines()[0]
