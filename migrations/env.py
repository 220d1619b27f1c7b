"""Alembic's entry point: connects with the URL of the settings, or with the caller's URL."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, pool, text

from outbox.postgres.schema.metadata import METADATA
from outbox.settings.environment import database_url


def _url() -> str:
    """Return the URL that the caller passes (tests, ``outbox migrate``) or the setting."""
    given = context.config.attributes.get("database_url")
    url = str(given) if given is not None else database_url()
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


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


run()
