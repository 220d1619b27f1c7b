"""Alembic's entry point: connects with the URL of the settings, or with the caller's URL."""

from __future__ import annotations

from math import inf
from pathlib import Path
from threading import Event

from alembic import context
from sqlalchemy import Connection, create_engine, pool, text

from outbox.postgres.sessions import connections
from outbox.settings.environment import load_settings

ROLES = Path(__file__).with_name("roles.sql")
TRY_LOCK = "SELECT pg_try_advisory_lock(hashtext('outbox.migrate'))"


def _url() -> str:
    """Return the URL that the caller passes (tests, ``outbox migrate``) or the setting."""
    given = context.config.attributes.get("database_url")
    return str(given) if given is not None else load_settings().required_database_url()


def _session() -> connections.Connection:
    """Open a session with the settings of all our programs: none of others, and no limit of time.

    The address may have any form that libpq takes, such as several hosts.
    """
    session = connections.connect(_url(), "migrate", answer_seconds=inf)
    session.autocommit = False
    session.prepare_threshold = None  # a script of several statements cannot be prepared
    return session


def _lock(connection: Connection) -> None:
    """Wait until no other migration runs."""
    pause = Event()
    while not connection.execute(text(TRY_LOCK)).scalar():
        connection.commit()
        pause.wait(0.5)


def _grant(connection: Connection) -> None:
    """Create our roles and grant their rights again, if the schema is the newest one."""
    if set(context.get_context().get_current_heads()) == set(context.script.get_heads()):
        session = connection.connection.driver_connection
        assert session is not None
        session.execute(ROLES.read_text("utf-8"))
        connection.commit()


def run() -> None:
    """Run the migrations under one lock, so that two concurrent callers are safe."""
    engine = create_engine("postgresql+psycopg://", creator=_session, poolclass=pool.NullPool)
    with engine.connect() as connection:
        _lock(connection)
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS outbox"))
        connection.commit()
        context.configure(
            connection=connection,
            version_table_schema="outbox",
            include_schemas=True,
            transaction_per_migration=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        _grant(connection)


run()
