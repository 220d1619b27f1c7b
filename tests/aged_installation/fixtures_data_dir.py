"""The data directory of an ``outbox dev`` that has lived: its PostgreSQL is aged first."""

from __future__ import annotations

from pathlib import Path

import psycopg

from cli.dev.stack import DATABASE
from devservers.postgres import EmbeddedPostgres
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_template import aged_database
from tests.aged_installation.fixtures_xids import pass_2_32_xids


def age_data_dir(data_dir: Path) -> None:
    """Create the servers' folder with an aged database in it; stop what did it."""
    server = EmbeddedPostgres(data_dir / "postgres")
    data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
    server.start()
    try:
        pass_2_32_xids(server)
        with psycopg.connect(server.database_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        aged_database(Life(database_url=server.url_of(DATABASE)))
    finally:
        server.stop()
