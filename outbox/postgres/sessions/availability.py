"""Turns the many ways in which PostgreSQL can be away into one error."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors as pg

from outbox.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def available() -> AsyncIterator[None]:
    """Raise DatabaseUnavailable for every failure of the connection or the server."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, pg.ReadOnlySqlTransaction) as error:
        raise DatabaseUnavailable(type(error).__name__) from error
