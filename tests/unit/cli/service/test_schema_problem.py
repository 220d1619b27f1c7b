"""Separates a database without our tables from one that is away."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors as pg

from cli.invocation.exit_codes import ExitCode
from cli.program import exit_code_of, line_of
from outbox.errors import DatabaseUnavailable


def unavailable(cause: psycopg.Error) -> DatabaseUnavailable:
    error = DatabaseUnavailable(type(cause).__name__)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "kind", [pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName]
)
def test_what_a_migration_would_create_is_named_with_the_command(kind: type[psycopg.Error]) -> None:
    error = unavailable(kind('relation "outbox.x" does not exist\nLINE 1: SELECT'))
    line = 'outbox: relation "outbox.x" does not exist: run `outbox migrate up`'
    assert (line_of(error), exit_code_of(error)) == (line, ExitCode.UNREACHABLE)


def test_a_server_that_is_away_has_nothing_to_do_with_migrations() -> None:
    error = unavailable(pg.ConnectionFailure("connection refused"))
    assert line_of(error) == "outbox: ConnectionFailure"
