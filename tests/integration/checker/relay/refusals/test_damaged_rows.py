"""A row that is not what was prepared is never published, and one that is gone is never passed."""

from __future__ import annotations

from typing import LiteralString

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from outbox.operators.store_view import shard_state
from outbox.postgres.operators.operator_view import OperatorView
from outbox.postgres.operators.postgres_checks import halt_health
from outbox.relay.protocol.state import HaltReason, Phase
from tests.fixtures_paths import PROJECT
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    commit,
    drain_until_free,
    heads,
    open_rows,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

DAMAGE: tuple[LiteralString, ...] = (
    "value = 'other'",
    "key = 'another'",
    "headers = '{x}'",
    "content_digest = 1",
    "nonce = nonce # 1",
    "transaction_id = 'other'",
)
HELD = """
SELECT DISTINCT publish_error, attempts FROM outbox.held_record
WHERE released_at IS NULL AND attempts > 0"""
KEEP = "CREATE TEMPORARY TABLE kept AS SELECT * FROM outbox.half_message"
RESTORE = """
UPDATE outbox.half_message h SET (value, key, headers, content_digest, nonce, transaction_id)
    = (k.value, k.key, k.headers, k.content_digest, k.nonce, k.transaction_id)
FROM kept k WHERE k.half_id = h.half_id"""
RUNBOOKS = (PROJECT / "docs" / "runbooks.md").read_text("utf-8")
INSTEAD = RUNBOOKS.partition("```sql\n")[2].partition("```")[0]


def test_a_damaged_row_is_held_with_its_key_until_it_is_repaired(world: RelayWorld) -> None:
    commit(world, b"before", b"1")
    fields = [(b"%d" % n, b"key-%d" % n) for n in range(2, 2 + len(DAMAGE))]
    damaged = world.commit(*(world.message(*each, headers=(("a", b"b"),)) for each in fields))
    commit(world, b"key-2", b"8")
    commit(world, b"other", b"9")
    world.connection.execute(KEEP)
    for half_id, change in zip(damaged, DAMAGE, strict=True):
        changed: LiteralString = f"UPDATE outbox.half_message SET {change} WHERE half_id = %s"
        world.connection.execute(changed, (half_id,))
    relay = world.relay()
    drain(relay)
    assert heads(world, 2) == [b"1", b"9"]
    assert world.connection.execute(HELD).fetchall() == [("STORED_ROW_DAMAGED", 1)]
    assert open_rows(world) == len(DAMAGE) + 1
    world.connection.execute(RESTORE)
    relay.close()
    drain_until_free(world)
    published = heads(world, len(DAMAGE) + 3)
    assert sorted(published) == [b"%d" % n for n in range(1, 10)]
    assert published.index(b"2") < published.index(b"8")


def test_a_shard_halts_before_a_commit_whose_row_is_gone_and_goes_on_when_it_is_back(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(world, b"a", b"1")
    (gone,) = commit(world, b"a", b"2")
    commit(world, b"a", b"3")
    world.connection.execute("DELETE FROM outbox.half_message WHERE half_id = %s", (gone,))
    relay = world.relay()
    done = drain(relay)
    assert (done.phase, done.halt) == (Phase.HALT, HaltReason.ROW_MISSING)
    assert heads(world, 1) == [b"1"]
    assert f"no row {gone}" in capsys.readouterr().out
    with OperatorView(world.database_url) as view:
        health = halt_health([shard_state(row) for row in view.rows("shards")])
    assert "outbox shard resolve 3 --accept" in str(health.command)
    assert f"{SHARD}: row_missing" in health.detail
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    named = {"producer_group": world.message().producer_group, "topic": world.topic}
    world.connection.execute(INSTEAD.encode(), {"half_id": gone, **named})
    command = ["shard", "resolve", "3", "--accept", "--reason", "nothing has the row any more"]
    assert run(command) == ExitCode.OK
    drain(relay)
    assert heads(world, 2) == [b"1", b"3"]
    assert world.one(HELD) == "STORED_ROW_DAMAGED"
