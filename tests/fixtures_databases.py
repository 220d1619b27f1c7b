"""Fresh migrated databases: one template a session, one copy a test."""

from __future__ import annotations

from itertools import count
from urllib.parse import urlsplit

import psycopg
from alembic import command
from alembic.config import Config

from tests.fixtures_paths import PROJECT

TEMPLATE = "outbox_template"
_NUMBERS = count(1)


def with_database(url: str, name: str) -> str:
    """Return the URL with another database name."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def migrate(url: str, revision: str = "head") -> None:
    """Bring a database to a revision: the newest one, unless another is named."""
    config = Config()
    config.set_main_option("script_location", str(PROJECT / "migrations"))
    config.attributes["database_url"] = url
    command.upgrade(config, revision)


def make_template(server_url: str) -> str:
    """Create the migrated template database; return its name."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    migrate(with_database(server_url, TEMPLATE))
    return TEMPLATE


def make_database(server_url: str, template: str | None) -> str:
    """Create a database of its own for one test; return its URL."""
    name = f"test_{next(_NUMBERS)}"
    source = f" TEMPLATE {template}" if template else ""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}{source}")
        connection.execute(f"ALTER DATABASE {name} SET timezone = 'UTC'")
    return with_database(server_url, name)


def drop_database(server_url: str, url: str) -> None:
    """Drop a test's database, whoever is still connected to it."""
    name = urlsplit(url).path.lstrip("/")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
