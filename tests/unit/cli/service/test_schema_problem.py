"""A database without our tables is not taken for one that is away."""

from __future__ import annotations

from cli.invocation.exit_codes import ExitCode
from cli.program import exit_code_of, line_of
from outbox.errors import DatabaseUnavailable, SchemaBehind


def test_what_a_migration_would_create_is_named_with_the_command() -> None:
    error = SchemaBehind('relation "outbox.x" does not exist')
    line = 'outbox: relation "outbox.x" does not exist: run `outbox migrate up`'
    assert (line_of(error), exit_code_of(error)) == (line, ExitCode.UNREACHABLE)


def test_a_server_that_is_away_has_nothing_to_do_with_migrations() -> None:
    assert line_of(DatabaseUnavailable("ConnectionFailure")) == "outbox: ConnectionFailure"
