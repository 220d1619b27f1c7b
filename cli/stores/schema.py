"""The database schema: its revision, the newest revision, and the upgrade."""

from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool
from sqlalchemy.exc import OperationalError, ProgrammingError

from devservers.artifacts import PROJECT_ROOT
from outbox.errors import ConfigurationError, DatabaseUnavailable
from outbox.postgres.operators.operator_view import OperatorView


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """The revision of a database and the newest one."""

    current: str | None
    newest: str

    @property
    def is_current(self) -> bool:
        """Return whether the schema is the newest."""
        return self.current == self.newest


def upgrade(database_url: str) -> None:
    """Upgrade the schema to the newest revision; safe to repeat and to run concurrently.

    Raises DatabaseUnavailable, and ConfigurationError for a database that cannot store all texts.
    """
    _refuse_encoding(database_url)
    config = _config()
    config.attributes["database_url"] = database_url
    try:
        command.upgrade(config, "head")
    except OperationalError as error:
        raise DatabaseUnavailable(_first_line(error)) from error


def schema_state(database_url: str) -> SchemaState:
    """Return the revisions; a database that was never migrated has no current one.

    Raises DatabaseUnavailable.
    """
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    url = database_url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        with create_engine(url, poolclass=pool.NullPool).connect() as connection:
            options = {"version_table_schema": "outbox"}
            context = MigrationContext.configure(connection, opts=options)
            return SchemaState(current=context.get_current_revision(), newest=str(newest))
    except (OperationalError, ProgrammingError) as error:
        raise DatabaseUnavailable(_first_line(error)) from error


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
