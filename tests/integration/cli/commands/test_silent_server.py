"""A command that asks a PostgreSQL which gives no answer ends with one line, and the code 6."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from outbox.postgres.operators import operator_view
from outbox.postgres.sessions import answer_limit
from tests.integration.api.fixtures_keys import PEPPER

LOGGED_IN = b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\x05I"
"""AuthenticationOk and ReadyForQuery."""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the settings name a server that lets everybody in and then says nothing."""
    for module in (answer_limit, operator_view):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        url = f"postgresql://{host}:{port}/outbox?sslmode=disable&gssencmode=disable"
        monkeypatch.setenv("OUTBOX_DATABASE_URL", url)
        monkeypatch.setenv("OUTBOX_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
        monkeypatch.setenv("OUTBOX_AUTH_PEPPER", PEPPER)
        threading.Thread(target=_let_in, args=(listener,), daemon=True).start()
        yield


def _let_in(listener: socket.socket) -> None:
    kept = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.recv(1024)
            connection.sendall(LOGGED_IN)
            kept.append(connection)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["migrate", "up"],
        ["installation", "renew", "--yes", "--reason", "why"],
        ["shard", "resolve", "1", "--accept", "--reason", "why"],
        ["key", "create", "--database", "--name", "n", "--scope", "admin", "--group", "*"],
    ],
    ids=" ".join,
)
def test_a_command_ends_with_one_line(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == ExitCode.UNREACHABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert "gave no answer within 0.3 s" in line
