"""Statements that SQLAlchemy Core composes from filters.

Apart from the other reads: importing SQLAlchemy takes as long as all else that a command imports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from outbox.postgres.sessions.reads import rows_of

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.sql.elements import CompilerElement

    from outbox.postgres.sessions.connections import AsyncConnection

_DIALECT: Final[Dialect] = PGDialect_psycopg()  # type: ignore[no-untyped-call]


async def run(connection: AsyncConnection, statement: CompilerElement) -> list[dict[str, Any]]:
    """Run a statement that SQLAlchemy Core has composed; return its rows, if it has any."""
    compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    return await rows_of(connection, compiled.string, compiled.params)
