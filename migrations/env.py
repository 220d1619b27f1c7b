"""Alembic's entry point: connects with the URL of the settings, or with the caller's URL."""

from __future__ import annotations

from pathlib import Path

from alembic import context
from sqlalchemy import Connection, create_engine, pool, text

from outbox.postgres.schema.metadata import METADATA
from outbox.settings.environment import database_url

GRANTS = Path(__file__).with_name("grants.sql")


def _url() -> str:
    """Return the URL that the caller passes (tests, ``outbox migrate``) or the setting."""
    given = context.config.attributes.get("database_url")
    url = str(given) if given is not None else database_url()
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _grant(connection: Connection) -> None:
    """Create our roles and grant their rights again, if the schema is the newest one."""
    if set(context.get_context().get_current_heads()) == set(context.script.get_heads()):
        session = connection.connection.driver_connection
        assert session is not None
        session.execute(GRANTS.read_text("utf-8"))
        connection.commit()


def run() -> None:
    """Run the migrations under one lock, so that two concurrent callers are safe."""
    engine = create_engine(_url(), poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(hashtext('outbox.migrate'))"))
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS outbox"))
        connection.commit()
        context.configure(
            connection=connection,
            target_metadata=METADATA,
            version_table_schema="outbox",
            include_schemas=True,
            transaction_per_migration=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        _grant(connection)


run()
