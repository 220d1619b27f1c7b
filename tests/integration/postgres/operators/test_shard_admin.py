"""An operator's decisions on a halted shard: afterwards nothing is published twice."""

from __future__ import annotations

import pytest

from cli.invocation.exit_codes import CommandFailed
from outbox.messages.message_id import SHARDS
from outbox.relay.halt_resolution import RESOLUTIONS, HaltResolution
from outbox.relay.protocol.state import HaltReason, Phase
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def published(world: RelayWorld, *values: bytes) -> None:
    """Publish messages and stop the relay cleanly."""
    world.commit_values(*values)
    relay = world.relay()
    drain(relay)
    relay.close()


def halted_for(world: RelayWorld) -> HaltReason | None:
    """Run a relay until it halts; return the reason."""
    done = drain(world.relay_again())
    assert done.phase is Phase.HALT
    return done.halt


def assert_continues(world: RelayWorld) -> None:
    """Commit one more and let a relay publish it; the shard must not be halted."""
    world.commit_values(b"new")
    assert drain(world.relay_again()).phase is Phase.RUN


def test_a_missing_cursor_is_rebuilt_from_the_topics_and_nothing_is_repeated(
    world: RelayWorld,
) -> None:
    published(world, b"one", b"two")
    world.connection.execute("DELETE FROM outbox.progress")
    assert halted_for(world) is HaltReason.CURSOR_MISSING
    assert world.resolve(HaltResolution.SCAN)["learned"] != 0
    assert_continues(world)
    assert world.values(3) == [b"one", b"two", b"new"]


def test_a_lost_log_is_replaced_by_the_records_newer_than_the_cursor(world: RelayWorld) -> None:
    published(world, b"one")
    position = world.connection.execute(
        "SELECT position, position_n, batch_no FROM outbox.progress WHERE name = 'relay:3'"
    ).fetchone()
    published(world, b"two")
    world.connection.execute(
        "UPDATE outbox.progress SET (position, position_n, batch_no) = (%s, %s, %s),"
        " manifest_offset = 1000000",
        position,
    )
    assert halted_for(world) is HaltReason.PROGRESS_LOST
    world.resolve(HaltResolution.SCAN)
    assert_continues(world)
    assert world.values(3) == [b"one", b"two", b"new"]


def test_accepted_duplicates_are_published_again_and_the_shard_continues(world: RelayWorld) -> None:
    published(world, b"one")
    world.connection.execute(
        "UPDATE outbox.progress SET position = 0, position_n = 0, manifest_offset = 1000000"
    )
    assert halted_for(world) is HaltReason.PROGRESS_LOST
    world.resolve(HaltResolution.ACCEPT_DUPLICATES)
    assert_continues(world)
    assert world.values(3) == [b"one", b"one", b"new"]


def test_a_new_topic_is_accepted_and_what_is_in_the_data_topics_is_not_repeated(
    world: RelayWorld,
) -> None:
    """The cursor is one second behind: only the old topic lists the batches after it."""
    published(world, b"one")
    world.connection.execute(
        "UPDATE outbox.progress SET position = 0, position_n = 0, batch_no = 0"
    )
    world.progress_topic = make_topic(world.bootstrap_servers, partitions=SHARDS)
    assert halted_for(world) is HaltReason.TOPIC_CHANGED
    assert world.resolve(HaltResolution.ACCEPT)["manifest_offset"] == 0
    assert_continues(world)
    assert world.values(2) == [b"one", b"new"]


@pytest.mark.parametrize("halt", [None, *HaltReason])
def test_a_resolution_that_the_halt_reason_does_not_allow_is_refused(
    world: RelayWorld, halt: HaltReason | None
) -> None:
    world.connection.execute(
        "INSERT INTO outbox.progress (name, halt_reason) VALUES ('relay:3', %s)"
        " ON CONFLICT (name) DO UPDATE SET halt_reason = EXCLUDED.halt_reason",
        (halt,),
    )
    for way in set(HaltResolution) - set(RESOLUTIONS[halt] if halt else ()):
        with pytest.raises(CommandFailed, match="not halted" if halt is None else f"--{way}"):
            world.resolve(way)
    assert (
        world.one("SELECT count(*) FROM outbox.audit_log WHERE operator IS DISTINCT FROM 'aged'")
        == 0
    )
