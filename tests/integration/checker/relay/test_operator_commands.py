"""`outbox shard` as an operator command."""

from __future__ import annotations

import json

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.integration.checker.relay.fixtures_relay import RelayWorld

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


@pytest.fixture(autouse=True)
def settings(world: RelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the command at the world's stores."""
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)


def test_a_halted_shard_is_shown_with_what_to_do(
    world: RelayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.connection.execute(
        "INSERT INTO outbox.progress (name, halt_reason) VALUES ('relay:3', 'cursor_missing')"
        " ON CONFLICT (name) DO UPDATE SET halt_reason = excluded.halt_reason"
    )
    assert run(["-o", "json", "shard", "show", "3"]) == ExitCode.OK
    shown = json.loads(capsys.readouterr().out)
    assert (shown["halt_reason"], "--scan" in shown["advice"]) == ("cursor_missing", True)


def test_a_shard_that_is_not_halted_cannot_be_resolved() -> None:
    command = ["shard", "resolve", "3", "--scan", "--reason", "why not"]
    assert run(command) == ExitCode.CONFLICT


def test_a_resolution_needs_one_option_and_a_reason() -> None:
    assert run(["shard", "resolve", "3", "--reason", "x"]) == ExitCode.USAGE
    assert run(["shard", "resolve", "3", "--scan"]) == ExitCode.USAGE
