"""A database without our tables is not taken for one that is away."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors as pg

from cli.invocation.exit_codes import ExitCode
from cli.program import exit_code_of, line_of
from outbox.errors import DatabaseUnavailable


@pytest.mark.parametrize(
    "kind", [pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName]
)
def test_what_a_migration_would_create_is_named_with_the_command(kind: type[psycopg.Error]) -> None:
    error = DatabaseUnavailable(kind.__name__)
    error.__cause__ = kind('relation "outbox.x" does not exist\nLINE 1: SELECT')
    line = 'outbox: relation "outbox.x" does not exist: run `outbox migrate up`'
    assert (line_of(error), exit_code_of(error)) == (line, ExitCode.UNREACHABLE)
