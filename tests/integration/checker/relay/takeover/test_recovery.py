"""The situations that a relay finds at a takeover, and its reactions."""

from __future__ import annotations

import signal

import pytest

from outbox.messages.message_id import HalfId
from outbox.relay.protocol import publication
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, first_batch
from tests.integration.checker.relay.takeover.fixtures_forgotten_tail import (
    forget_tail,
    progress_of,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def publish_and_forget(world: RelayWorld) -> list[HalfId]:
    """Publish two messages in two batches; PostgreSQL then loses the second batch."""
    world.commit_values(b"kept")
    relay = world.relay()
    drain(relay)
    relay.close()
    before = progress_of(world)
    forgotten = world.commit_values(b"forgotten")
    relay = world.relay()
    drain(relay)
    relay.close()
    forget_tail(world, before, *forgotten)
    return forgotten


def test_a_batch_whose_progress_was_not_yet_written_is_adopted_and_not_repeated(
    world: RelayWorld,
) -> None:
    relay = world.relay()
    world.commit_values(b"one")
    first_batch(relay)
    world.commit_values(b"two")
    first_batch(relay)
    world.terminate_holder()
    world.commit_values(b"three")
    drain(relay)
    assert world.values(3) == [b"one", b"two", b"three"]
    assert world.metrics["relay_history_ids_total"]._value.get() == 0
    assert world.one("SELECT count(*) FROM outbox.already_published WHERE shard = 3") == 0


def test_a_slow_commit_drops_the_handle_and_changes_nothing_else(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "CLEAN_COMMIT_SECONDS", 0.0)
    relay = world.relay()
    for value in (b"one", b"two"):
        world.commit_values(value)
        drain(relay)
    assert world.metrics["relay_drops_total"].labels(reason="slow_commit")._value.get() == 2
    assert world.values(2) == [b"one", b"two"]
    assert world.one("SELECT sum(cardinality(offsets)) FROM outbox.publication_log") == 2


def test_f10_a_lost_commit_is_recovered_from_kafka_and_not_published_again(
    world: RelayWorld,
) -> None:
    (forgotten,) = publish_and_forget(world)
    relay = world.relay()
    drain(relay)
    world.commit_values(b"new")
    drain(relay)
    assert world.values(3) == [b"kept", b"forgotten", b"new"]
    decided = world.connection.execute(
        "SELECT decision, decided_by FROM outbox.op_message WHERE half_id = %s", (forgotten,)
    ).fetchone()
    assert decided == (1, 5)
    assert world.one("SELECT half_id FROM outbox.already_published WHERE shard = 3") == forgotten
    assert world.one("SELECT count(*) FROM outbox.commit_log WHERE %s = ANY (half_ids)", forgotten)


def test_f10_the_next_relay_finishes_an_interrupted_recovery(
    world: RelayWorld,
) -> None:
    forgotten = publish_and_forget(world)
    with world.process("relay.after_history_chunk=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    world.commit_values(b"new")
    drain(world.relay())
    assert world.values(3) == [b"kept", b"forgotten", b"new"]
    assert (
        world.one("SELECT array_agg(half_id) FROM outbox.already_published WHERE shard = 3")
        == forgotten
    )


def test_f10_a_message_that_was_rolled_back_again_stays_rolled_back_and_is_an_incident(
    world: RelayWorld,
) -> None:
    (recalled,) = publish_and_forget(world)
    world.connection.execute(
        "INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)"
        " VALUES (%s, 1, now(), 2, 1)",
        (recalled,),
    )
    drain(world.relay())
    assert world.one("SELECT decision FROM outbox.op_message WHERE half_id = %s", recalled) == 2
    audited = world.connection.execute("SELECT action, half_id FROM outbox.audit_log").fetchone()
    assert audited == ("published_and_rolled_back", recalled)
