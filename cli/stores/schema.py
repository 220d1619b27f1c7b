"""The database schema: where it stands, where it should be, how it gets there."""

from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool
from sqlalchemy.exc import OperationalError, ProgrammingError

from devservers.artifacts import PROJECT_ROOT
from outbox.errors import DatabaseUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """The revision of a database beside the newest one."""

    current: str | None
    newest: str

    @property
    def is_current(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.current == self.newest


def upgrade(database_url: str) -> None:
    """Bring the schema to the newest revision; safe to run twice and by two at once.

    Raises DatabaseUnavailable.
    """
    config = _config()
    config.attributes["database_url"] = database_url
    try:
        command.upgrade(config, "head")
    except OperationalError as error:
        raise DatabaseUnavailable(_first_line(error)) from error


def schema_state(database_url: str) -> SchemaState:
    """Return where the schema stands; a database never migrated has no current revision.

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


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(PROJECT_ROOT / "migrations").replace("%", "%%"))
    return config


def _first_line(error: Exception) -> str:
    return str(error.__cause__ or error).strip().splitlines()[0]
