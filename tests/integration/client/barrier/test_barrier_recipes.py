"""The SQL of docs/barrier.md for other databases keeps the barrier's promise, in both orders."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "barrier.md").read_text("utf-8")
SQL = dict(re.findall(r"```sql\n-- (\w+)\n(.*?)```", PAGE, re.DOTALL))
IDS = ("billing", "m-1")
TESTED = ("sqlite", "mysql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database with the page's table; ``connect`` opens a session in autocommit."""

    name: str
    connect: Callable[[], Any]
    begin: str
    duplicate: Callable[[Exception], bool]
    is_busy: Callable[[Exception], bool]
    error: type[Exception]

    def run(self, session: Any, text: str) -> None:
        """Run statements of the page with the two ids."""
        for statement in text.split(";"):
            if statement.strip():
                session.cursor().execute(literal(statement))

    def fence(self) -> Exception | None:
        """Fence in a session of its own; return the error that ended it."""
        session = self.connect()
        try:
            self.run(session, SQL[f"{self.name}_fence"])
        except self.error as error:
            session.rollback()
            return error
        finally:
            session.close()
        return None

    def local_transaction(self) -> Any:
        """Return a session with the record in an open transaction."""
        session = self.connect()
        try:
            self.run(session, f"{self.begin}; {SQL['record']}")
        except self.error:
            session.close()
            raise
        return session

    def outcome(self) -> str | None:
        """Return what the page's read finds, in a session of its own."""
        session = self.connect()
        try:
            cursor = session.cursor()
            cursor.execute(literal(SQL["read"].replace(";", "")))
            found = cursor.fetchone()
        finally:
            session.close()
        return None if found is None else str(found[0])


def literal(statement: str) -> str:
    """Return a statement with its parameters written out."""
    return statement.replace("$1", f"'{IDS[0]}'").replace("$2", f"'{IDS[1]}'")


def sqlite(file: Path) -> Database:
    """Return a database in a file."""
    return Database(
        name="sqlite",
        connect=lambda: sqlite3.connect(file, isolation_level=None, check_same_thread=False),
        begin="BEGIN IMMEDIATE",
        duplicate=lambda error: sqlite_name(error) == "SQLITE_CONSTRAINT_PRIMARYKEY",
        is_busy=lambda error: sqlite_name(error) == "SQLITE_BUSY",
        error=sqlite3.Error,
    )


def sqlite_name(error: Exception) -> str:
    """Return the name of SQLite's error code."""
    return str(getattr(error, "sqlite_errorname", ""))


def mysql(socket: Path) -> Database:
    """Return a database of a running server."""
    return Database(
        name="mysql",
        connect=lambda: pymysql.connect(
            unix_socket=str(socket), user="root", database="billing", autocommit=True
        ),
        begin="START TRANSACTION",
        duplicate=lambda error: error.args[0] == 1062,
        is_busy=lambda error: error.args[0] in (1205, 1213),
        error=pymysql.MySQLError,
    )


@pytest.fixture(params=TESTED)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return an empty database with the page's table."""
    if request.param == "sqlite":
        made = sqlite(tmp_path / "billing.db")
    else:
        socket = request.getfixturevalue("mariadb_socket")
        with pymysql.connect(unix_socket=str(socket), user="root") as session:
            session.cursor().execute("CREATE OR REPLACE DATABASE billing")
        made = mysql(socket)
    session = made.connect()
    made.run(session, SQL[f"{made.name}_create"])
    session.close()
    return made


def test_a_message_that_is_fenced_lets_no_late_record_commit(database: Database) -> None:
    assert database.fence() is None
    assert database.outcome() == "fenced"
    with pytest.raises(database.error) as raised:
        database.local_transaction()
    assert database.duplicate(raised.value)


def test_a_fence_waits_for_an_open_record_and_gives_up(database: Database) -> None:
    local = database.local_transaction()
    error = database.fence()
    assert error is not None
    assert database.is_busy(error)
    database.run(local, "ROLLBACK")
    local.close()
    assert database.outcome() is None
    assert database.fence() is None
    assert database.outcome() == "fenced"


def test_each_database_of_the_table_has_its_sql() -> None:
    table = re.findall(r"^\| (\w[\w ,()]*?) \| (?:yes|on|no)", PAGE, re.MULTILINE)
    assert len(table) == 5
    for name in ("sqlite", "mysql", "oracle", "sqlserver"):
        assert {f"{name}_create", f"{name}_fence"} <= SQL.keys()
