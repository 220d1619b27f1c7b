"""The consumer and the SQL of docs/consumers.md apply each record once."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Message

from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "consumers.md").read_text("utf-8")
SQL = dict(re.findall(r"```sql\n-- (\w+)\n(.*?);\n```", PAGE, re.DOTALL))
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_consumer_of_the_page_grants_each_record_once(local_database: str) -> None:
    record = Message(headers=[("outbox_message_id", b"m-1")])
    done: list[Any] = []
    consumer = SimpleNamespace(
        consume=lambda most, timeout: [record], commit=lambda asynchronous: done.append("commit")
    )
    with psycopg.connect(local_database) as connection:
        names = {
            "connection": connection,
            "consumer": consumer,
            "grant_points": lambda _, granted: done.append(granted),
        }
        exec(PYTHON, names)
        names["consume_once"]()  # type: ignore[operator]
        names["consume_once"]()  # type: ignore[operator]
    assert done == [record, "commit", "commit"]


@pytest.fixture(params=["postgres", "sqlite", "mysql"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """Run a statement of the page in a database; returns how many rows it has changed."""
    if request.param == "postgres":
        made: Any = psycopg.connect(request.getfixturevalue("local_database"))
    elif request.param == "sqlite":
        made = sqlite3.connect(tmp_path / "member.db")
    else:
        made = pymysql.connect(
            unix_socket=str(request.getfixturevalue("mariadb_socket")), user="root"
        )
        made.cursor().execute("CREATE OR REPLACE DATABASE member")
        made.select_db("member")

    def execute(name: str) -> int:
        statement = SQL.get(f"{request.param}_{name}") or SQL.get(name, name)
        cursor.execute(statement.replace("$1", "'member-service'").replace("$2", "'m-1'"))
        return int(cursor.rowcount)

    with closing(made):
        cursor = made.cursor()
        execute("create")
        yield execute


def first_time(run: Callable[[str], int]) -> bool:
    """Do what the page says."""
    try:
        return run("first_time") == 1
    except pymysql.IntegrityError as error:
        return bool(error.args[0] != 1062)


def test_the_sql_of_the_page_answers_once_and_again_after_a_purge(
    run: Callable[[str], int],
) -> None:
    assert [first_time(run) for _ in range(3)] == [True, False, False]
    assert run("purge") == 0
    assert run("UPDATE outbox_inbox SET applied_at = '2026-01-01'") == 1
    assert run("purge") == 1
    assert first_time(run)
