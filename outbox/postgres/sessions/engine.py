"""SQLAlchemy's engine, for migrations: its sessions have the settings of all other programs.

So limits of time and other settings for the programs of a shared database do not reach them, and
the address may have any form that libpq takes, such as several hosts.
"""

from __future__ import annotations

from sqlalchemy import Engine, create_engine, pool

from outbox.postgres.sessions.connections import Connection, connect


def make_engine(database_url: str) -> Engine:
    """Return an engine that opens a session for each use and closes it afterwards."""

    def session() -> Connection:
        connection = connect(database_url, "migrate")
        connection.autocommit = False
        connection.prepare_threshold = None  # a script of several statements cannot be prepared
        return connection

    return create_engine("postgresql+psycopg://", creator=session, poolclass=pool.NullPool)
