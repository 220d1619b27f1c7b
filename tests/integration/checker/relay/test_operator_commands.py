"""`outbox shard` and `outbox held` as operator commands."""

from __future__ import annotations

import json

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from tests.integration.checker.relay.fixtures_relay import RelayWorld

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


@pytest.fixture(autouse=True)
def settings(world: RelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the command at the world's stores."""
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)


def held_message(world: RelayWorld) -> str:
    """Store a held record, as the relay would; return its message id."""
    (half_id,) = world.commit_values(b"refused")
    nonce = world.one(
        "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, key, xid, n,"
        " publish_error, attempts, next_attempt_at) SELECT half_id, nonce, 3, topic_id, key, 1, 1,"
        " 'MSG_SIZE_TOO_LARGE', 1, now() + interval '5 minutes' FROM outbox.half_message"
        " WHERE half_id = %s RETURNING nonce",
        half_id,
    )
    return message_id_text(HalfId(half_id), Nonce(nonce))


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


def test_a_held_record_is_listed_released_and_dropped_with_its_reason(
    world: RelayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    message_id = held_message(world)
    assert run(["-o", "json", "held", "list"]) == ExitCode.OK
    listed = {each["message_id"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed[message_id]["attempts"] == 1
    assert run(["held", "release", message_id, "--reason", "limit raised"]) == ExitCode.OK
    assert (
        world.one("SELECT next_attempt_at <= now() FROM outbox.held_record WHERE shard = 3") is True
    )
    assert run(["held", "drop", message_id, "--reason", "obsolete"]) == ExitCode.OK
    assert world.one("SELECT drop_reason FROM outbox.held_record WHERE shard = 3") == "obsolete"
    audited = world.connection.execute(
        "SELECT action, reason FROM outbox.audit_log WHERE operator IS DISTINCT FROM 'aged'"
        " ORDER BY id"
    )
    assert audited.fetchall() == [("held.release", "limit raised"), ("held.drop", "obsolete")]


def test_a_record_is_dropped_once_and_an_unknown_one_never(world: RelayWorld) -> None:
    message_id = held_message(world)
    assert run(["held", "drop", message_id, "--reason", "obsolete"]) == ExitCode.OK
    assert run(["held", "drop", message_id, "--reason", "again"]) == ExitCode.CONFLICT
    unknown = message_id_text(HalfId(1 << 20), Nonce(5))
    assert run(["held", "drop", unknown, "--reason", "x"]) == ExitCode.NOT_FOUND
    assert run(["held", "release", message_id]) == ExitCode.USAGE
