"""Fresh migrated databases: one template a session, one copy a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from alembic import command
from alembic.config import Config

from tests.fixtures_paths import PROJECT

TEMPLATE = "outbox_template"
ROLES = ("outbox_api", "outbox_checker", "outbox_reconcile", "outbox_publish")
_NUMBERS = count(1)
_KEPT: dict[str, psycopg.Connection[Any]] = {}
"""One session for each server whose session is kept, by the server's URL."""
_LET_LOG_IN = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{0}') THEN
        ALTER ROLE {0} LOGIN PASSWORD '{0}';
    END IF;
END $$
"""


def with_database(url: str, name: str) -> str:
    """Return the URL with another database name."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def as_role(url: str, role: str) -> str:
    """Return the URL of the same database for one of our roles."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{role}:{role}@{parts.netloc.rpartition('@')[2]}").geturl()


def migrate(url: str, revision: str = "head", migrations: Path = PROJECT / "migrations") -> None:
    """Bring a database to a revision: the newest one, unless another is named.

    Our roles can then log in, as a deployment lets them.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations))
    config.attributes["database_url"] = url
    command.upgrade(config, revision)
    let_roles_log_in(url)


def let_roles_log_in(url: str) -> None:
    """Give each of our roles that exists a password, as a deployment does."""
    with psycopg.connect(url, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(_LET_LOG_IN.format(role).encode())


def make_template(server_url: str) -> str:
    """Create the migrated template database, unless a running server has one; return its name."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        if connection.execute(f"SELECT FROM pg_database WHERE datname = '{TEMPLATE}'").rowcount:
            return TEMPLATE
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    migrate(with_database(server_url, TEMPLATE))
    return TEMPLATE


@contextmanager
def session_kept(server_url: str) -> Iterator[None]:
    """Create and drop databases in one session for the block: each login costs a third of one."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        _KEPT[server_url] = connection
        try:
            yield
        finally:
            del _KEPT[server_url]


def make_database(server_url: str, template: str | None) -> str:
    """Create a database of its own for one test; return its URL.

    Its files are copied: their way through the write-ahead log, page by page, takes three times the
    processor time.
    """
    name = f"test_{next(_NUMBERS)}"
    source = f" TEMPLATE {template}" if template else ""
    _run(
        server_url,
        f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
        f"CREATE DATABASE {name}{source} STRATEGY FILE_COPY",
        f"ALTER DATABASE {name} SET timezone = 'UTC'",
    )
    return with_database(server_url, name)


def drop_database(server_url: str, url: str) -> None:
    """Drop a test's database, whoever is still connected to it."""
    name = urlsplit(url).path.lstrip("/")
    _run(server_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _run(server_url: str, *statements: str) -> None:
    kept = _KEPT.get(server_url)
    new = nullcontext(kept) if kept else psycopg.connect(server_url, autocommit=True)
    with new as connection:
        for statement in statements:
            connection.execute(statement.encode())
