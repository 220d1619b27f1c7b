"""The database schema: its revision, the newest revision, and the upgrade."""

from dataclasses import dataclass

import psycopg
from alembic import command
from alembic.config import Config
from psycopg.errors import InsufficientPrivilege, LockNotAvailable
from sqlalchemy.exc import DBAPIError

from devservers.artifacts import PROJECT_ROOT
from outbox.errors import ConfigurationError, DatabaseUnavailable
from outbox.postgres.maintenance.readiness import newest_revision
from outbox.postgres.operators.operator_view import OperatorView
from outbox.postgres.sessions.availability import REFUSED, unavailable, unavailable_on


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """The revision of a database and the newest one."""

    current: str | None
    newest: str

    @property
    def is_current(self) -> bool:
        """Return whether this version can use the schema; revisions are numbered."""
        return self.current is not None and self.current >= self.newest


def upgrade(database_url: str) -> None:
    """Upgrade the schema to the newest revision; safe to repeat and to run concurrently.

    A database that a newer version has migrated stays as it is: this version can use it.
    Raises DatabaseUnavailable, also for a migration that gave up behind a lock, and DatabaseRefused
    for one that a right or a stranger's trigger forbids; nothing of it was changed then. Raises
    ConfigurationError for a database that cannot store all texts.
    """
    _refuse_encoding(database_url)
    state = schema_state(database_url)
    if state.is_current and state.current != state.newest:
        return
    config = _config()
    config.attributes["database_url"] = database_url
    try:
        command.upgrade(config, "head")
    except (psycopg.Error, DBAPIError) as error:
        _raise_known(error)
        raise


def _raise_known(error: Exception) -> None:
    """Raise what an operator can end; any other error is a defect of the migration."""
    cause = error.__cause__ if isinstance(error, DBAPIError) else error
    if isinstance(cause, REFUSED):
        raise unavailable(cause) from error
    if isinstance(cause, LockNotAvailable):
        raise DatabaseUnavailable(
            f"{_first_line(error)}: a session uses its tables, nothing was changed; run it again"
        ) from error
    if isinstance(cause, psycopg.OperationalError):
        raise DatabaseUnavailable(_first_line(error)) from error


def schema_state(database_url: str) -> SchemaState:
    """Return the revisions; a database that was never migrated has no current one.

    Raises DatabaseUnavailable.
    """
    with unavailable_on(InsufficientPrivilege), OperatorView(database_url) as view:
        return SchemaState(current=view.revision(), newest=newest_revision())


def _refuse_encoding(database_url: str) -> None:
    with OperatorView(database_url) as view:
        encoding = view.server()["encoding"]
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database has the encoding {encoding}: make one that stores every text, by"
            " CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(PROJECT_ROOT / "migrations").replace("%", "%%"))
    return config


def _first_line(error: Exception) -> str:
    return str(error.__cause__ or error).strip().splitlines()[0]
