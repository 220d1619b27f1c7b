"""What an operator may decide about a halted shard, and that nothing goes out twice after it."""

from __future__ import annotations

import pytest

from cli.exit_codes import CommandFailed
from cli.stores.shard_resolution import Resolution
from outbox.operators.message_view import OperatorAction
from outbox.relay.halt_resolution import WAYS, Way
from outbox.relay.protocol.state import SHARDS, HaltReason, Phase
from outbox.settings.environment import load_settings
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

ACTION = OperatorAction(operator="tester", reason="a test", key_id=None)


def published(world: RelayWorld, *values: bytes) -> None:
    """Publish messages and stop the relay in good order."""
    world.commit_values(*values)
    relay = world.relay()
    drain(relay)
    relay.close()


def resolve(world: RelayWorld, way: Way) -> dict[str, object]:
    """Decide in the operator's name."""
    settings = load_settings(world.environment)
    return Resolution(settings, SHARD, world.progress_topic).resolve(way, ACTION)


def halted_for(world: RelayWorld) -> HaltReason | None:
    """Run a relay until it halts and tell why."""
    done = drain(world.relay_again())
    assert done.phase is Phase.HALT
    return done.halt


def goes_on(world: RelayWorld) -> None:
    """Commit one more and let a relay publish it; the shard must not be halted."""
    world.commit_values(b"new")
    assert drain(world.relay_again()).phase is Phase.RUN


def test_a_missing_cursor_is_rebuilt_from_the_topics_and_nothing_is_repeated(
    world: RelayWorld,
) -> None:
    published(world, b"one", b"two")
    world.connection.execute("DELETE FROM outbox.progress")
    assert halted_for(world) is HaltReason.CURSOR_MISSING
    assert resolve(world, Way.SCAN)["learned"] != 0
    goes_on(world)
    assert world.values(3) == [b"one", b"two", b"new"]


def test_a_lost_log_is_made_good_by_the_records_newer_than_the_cursor(world: RelayWorld) -> None:
    published(world, b"one")
    position = world.connection.execute(
        "SELECT position, position_n, batch_no FROM outbox.progress"
    ).fetchone()
    published(world, b"two")
    world.connection.execute(
        "UPDATE outbox.progress SET (position, position_n, batch_no) = (%s, %s, %s),"
        " manifest_offset = 1000000",
        position,
    )
    assert halted_for(world) is HaltReason.PROGRESS_LOST
    resolve(world, Way.SCAN)
    goes_on(world)
    assert world.values(3) == [b"one", b"two", b"new"]


def test_after_an_abort_of_a_transaction_that_kafka_lost_nothing_is_repeated(
    world: RelayWorld,
) -> None:
    """Its manifest is gone with the abort, while its records in other partitions are there."""
    published(world, b"one")
    cursor = world.connection.execute(
        "SELECT position, position_n, batch_no, crc FROM outbox.progress"
    ).fetchone()
    published(world, b"two")
    world.connection.execute(
        "UPDATE outbox.progress SET (position, position_n, batch_no, crc) = (%s, %s, %s, %s),"
        " halt_reason = 'replay_stuck'",
        cursor,
    )
    assert resolve(world, Way.SCAN)["learned"] == 1
    goes_on(world)
    assert world.values(3) == [b"one", b"two", b"new"]


def test_accepted_duplicates_go_out_again_and_the_shard_goes_on(world: RelayWorld) -> None:
    published(world, b"one")
    world.connection.execute(
        "UPDATE outbox.progress SET position = 0, position_n = 0, manifest_offset = 1000000"
    )
    assert halted_for(world) is HaltReason.PROGRESS_LOST
    resolve(world, Way.ACCEPT_DUPLICATES)
    goes_on(world)
    assert world.values(3) == [b"one", b"one", b"new"]


def test_a_broken_chain_is_scanned(world: RelayWorld) -> None:
    published(world, b"one")
    world.connection.execute(
        "UPDATE outbox.progress SET position = 0, position_n = 0, manifest_offset = 0, crc = 7"
    )
    assert halted_for(world) is HaltReason.CHAIN_BROKEN
    resolve(world, Way.SCAN)
    goes_on(world)
    assert world.values(2) == [b"one", b"new"]


def test_a_new_topic_is_accepted_and_what_is_in_the_data_topics_is_not_repeated(
    world: RelayWorld,
) -> None:
    """The cursor lags a second behind: what lies between was named by the old topic alone."""
    published(world, b"one")
    world.connection.execute(
        "UPDATE outbox.progress SET position = 0, position_n = 0, batch_no = 0"
    )
    world.progress_topic = make_topic(world.bootstrap_servers, partitions=SHARDS)
    assert halted_for(world) is HaltReason.TOPIC_CHANGED
    assert resolve(world, Way.ACCEPT)["manifest_offset"] == 0
    goes_on(world)
    assert world.values(2) == [b"one", b"new"]


def test_another_database_is_accepted(world: RelayWorld) -> None:
    published(world, b"one")
    world.connection.execute("UPDATE outbox.progress SET pg_system_id = 'other'")
    assert halted_for(world) is HaltReason.DATABASE_CHANGED
    resolve(world, Way.ACCEPT)
    goes_on(world)
    assert world.values(2) == [b"one", b"new"]


def test_the_running_relay_goes_on_by_itself_and_the_decision_is_audited(world: RelayWorld) -> None:
    published(world, b"one")
    world.connection.execute("UPDATE outbox.progress SET pg_system_id = 'other'")
    relay = world.relay()
    assert drain(relay).phase is Phase.HALT
    resolve(world, Way.ACCEPT)
    assert drain(relay).phase is Phase.RUN
    audited = world.connection.execute(
        "SELECT action, target, operator, reason, detail->>'way' FROM outbox.audit_log"
    ).fetchone()
    assert audited == ("shard.resolve", "shard 3", "tester", "a test", "accept")


@pytest.mark.parametrize("halt", [None, *HaltReason])
def test_a_way_that_the_reason_does_not_allow_is_refused(
    world: RelayWorld, halt: HaltReason | None
) -> None:
    world.connection.execute(
        "INSERT INTO outbox.progress (name, halt_reason) VALUES ('relay:3', %s)", (halt,)
    )
    for way in set(Way) - set(WAYS[halt] if halt else ()):
        with pytest.raises(CommandFailed, match="not halted" if halt is None else f"--{way}"):
            resolve(world, way)
    assert world.one("SELECT count(*) FROM outbox.audit_log") == 0
