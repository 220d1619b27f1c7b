"""A committed message whose stored row is damaged waits with its topic and key; all others flow."""

from __future__ import annotations

import pytest

from outbox.messages.message_id import HalfId, message_id_text
from tests.fixtures_paths import PROJECT
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    commit,
    drain_until_free,
    due_now,
    heads,
    large,
    lower,
    open_rows,
    raise_again,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

DAMAGED = "'{x}'", "'{x,NULL}'", "'{{a,b},{c,d}}'"
"""A name without a value, a value that is missing, an array of arrays."""
IN_PAYLOAD = (
    """jsonb_set(payload, '{headers}', '["x"]')""",
    """jsonb_set(payload, '{value}', '"x"')""",
)

REPAIR = (
    "UPDATE outbox.held_record SET payload = jsonb_set(payload, '{headers}',"
    """ '["name", "value"]') WHERE outbox.message_id(half_id, nonce) = 'MESSAGE_ID'"""
)
NONCE = "SELECT nonce FROM outbox.half_message WHERE half_id = %s"


def damage(world: RelayWorld, half_id: HalfId, headers: str = "'{x}'") -> None:
    """Damage the headers of a message."""
    statement = f"UPDATE outbox.half_message SET headers = {headers} WHERE half_id = %s"
    world.connection.execute(statement.encode(), (half_id,))


def errors(world: RelayWorld, half_id: HalfId) -> tuple[str, int]:
    """Return why a held record waits, and how often it was tried."""
    row = world.connection.execute(
        "SELECT publish_error, attempts FROM outbox.held_record WHERE half_id = %s", (half_id,)
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def seen_damaged(world: RelayWorld, half_id: HalfId) -> None:
    """Let relays continue until one has tried the damaged record."""
    relay = world.relay_again()

    def tried() -> bool:
        drain(relay)
        return errors(world, half_id)[1] > 0

    until(tried)
    drain(relay)


@pytest.mark.parametrize("headers", DAMAGED)
def test_a_damaged_message_is_held_with_its_key_and_all_others_flow(
    world: RelayWorld, headers: str
) -> None:
    _, damaged, third = commit(world, b"a", b"1", b"2", b"3")
    commit(world, b"b", b"4")
    damage(world, damaged, headers)
    drain(world.relay())
    seen_damaged(world, damaged)
    commit(world, b"a", b"5")
    commit(world, b"b", b"6")
    drain(world.relay_again())
    assert heads(world, 3) == [b"1", b"4", b"6"]
    assert errors(world, damaged) == ("STORED_ROW_DAMAGED", 1)
    assert errors(world, third)[1] == 0


def test_a_repaired_message_is_published_before_what_waited_behind_it(world: RelayWorld) -> None:
    _, damaged, *_ = commit(world, b"a", b"1", b"2", b"3")
    damage(world, damaged)
    drain(world.relay())
    seen_damaged(world, damaged)
    runbook = (PROJECT / "docs" / "runbooks.md").read_text()
    assert REPAIR in " ".join(runbook.split())
    message_id = message_id_text(damaged, world.one(NONCE, damaged))
    world.connection.execute(REPAIR.replace("MESSAGE_ID", message_id).encode())
    world.relay_again().close()
    drain_until_free(world)
    assert heads(world, 3) == [b"1", b"2", b"3"]
    assert ("name", b"value") in world.records(3)[1].headers


@pytest.mark.parametrize("payload", IN_PAYLOAD)
def test_a_held_record_that_is_damaged_keeps_only_its_key_waiting(
    world: RelayWorld, payload: str
) -> None:
    lower(world)
    damaged, _ = commit(world, b"a", large(1), b"2")
    commit(world, b"b", large(3), b"4")
    drain(world.relay())
    statement = f"UPDATE outbox.held_record SET payload = {payload} WHERE half_id = %s"
    world.connection.execute(statement.encode(), (damaged,))
    raise_again(world)
    relay = world.relay_again()

    def released() -> bool:
        due_now(world)
        drain(relay)
        return open_rows(world) == 2

    until(released)
    commit(world, b"c", b"5")
    drain(relay)
    assert heads(world, 3) == [b"3", b"4", b"5"]
    assert errors(world, damaged)[0] == "STORED_ROW_DAMAGED"


def test_a_record_that_waits_is_released_up_to_a_damaged_one(world: RelayWorld) -> None:
    lower(world)
    _, _, damaged, _ = commit(world, b"a", large(1), b"2", b"3", b"4")
    drain(world.relay())
    world.connection.execute(
        "UPDATE outbox.held_record SET payload = jsonb_set(payload, '{headers}', '[1]')"
        " WHERE half_id = %s",
        (damaged,),
    )
    raise_again(world)
    seen_damaged(world, damaged)
    assert heads(world, 2) == [b"1", b"2"]
    assert open_rows(world) == 2
