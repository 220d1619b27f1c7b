"""A command with a login of PostgreSQL that may not run it names the page that lists the logins."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_databases import as_role

pytestmark = pytest.mark.postgres

CREATE_KEY = "key create --database --name n --group g --scope messages:read"


@pytest.mark.parametrize(
    ("role", "command"),
    [
        ("outbox_reconcile", "status"),
        ("outbox_api", "migrate up"),
        ("outbox_checker", CREATE_KEY),
    ],
)
def test_the_next_step_is_named(
    role: str,
    command: str,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", as_role(database_url, role))
    monkeypatch.setenv("OUTBOX_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    monkeypatch.setenv("OUTBOX_AUTH_PEPPER", "a pepper of a test")
    assert run(command.split()) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("outbox: permission denied for ")
    assert line.endswith(
        "this login of PostgreSQL may not run the command;"
        " docs/operate.md, Where to run it, names the one that may"
    )
