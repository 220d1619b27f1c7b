"""What a relay has lived through on both stores: refusals, a halt, HISTORY, another delivery mode.

Real relays of one shard do it, in topics of this installation.
"""

from __future__ import annotations

from contextlib import closing

from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.shard_admin import ShardAdmin
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import HaltReason, Identity, Phase
from tests.fixtures_kafka import set_max_message_bytes
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

NAME = f"relay:{SHARD}"
LARGE = b"x" * 4_000
_FORGET = """
WITH gone AS (DELETE FROM outbox.commit_log WHERE shard = %s AND xid > %s RETURNING half_ids)
DELETE FROM outbox.op_message o USING gone WHERE o.half_id = ANY (gone.half_ids)
"""
_CURSOR = "position, position_n, manifest_offset, batch_no, crc, gen"


def published(world: RelayWorld, count: int = 10) -> None:
    """Publish some messages in exactly-once batches."""
    world.commit_values(*(f"aged-{n}".encode() for n in range(count)))
    _run(world)


def held_and_given_up(world: RelayWorld) -> None:
    """Have Kafka refuse two records: one stays held, the other is given up by an operator."""
    set_max_message_bytes(world.bootstrap_servers, world.topic, 1_000)
    held = world.commit(world.message(LARGE, key=b"aged-held"))
    dropped = world.commit(world.message(LARGE, key=b"aged-given-up"))
    _run(world)
    held_now = {
        row[0] for row in world.connection.execute("SELECT half_id FROM outbox.held_record")
    }
    assert {*held, *dropped} <= held_now
    world.connection.execute(
        "UPDATE outbox.held_record SET dropped_at = clock_timestamp(), drop_reason = 'aged'"
        " WHERE half_id = ANY (%s)",
        (dropped,),
    )


def halted_and_resolved(world: RelayWorld) -> None:
    """Let the shard halt because of another PostgreSQL, and let an operator accept it."""
    _run(world)
    identity = _identity(world)
    world.connection.execute(
        "UPDATE outbox.progress SET pg_system_id = 'another' WHERE name = %s", (NAME,)
    )
    assert drain(world.relay_again()).phase is Phase.HALT
    action = OperatorAction(operator="aged", reason="moved", key_id=None)
    with closing(ShardAdmin(world.database_url, SHARD)) as admin:
        way = HaltResolution.ACCEPT.value
        admin.settle(HaltReason.DATABASE_CHANGED, way, None, identity, action)
    _run(world)


def went_through_history(world: RelayWorld) -> None:
    """Lose PostgreSQL's newest commits after their publication; the next relay recovers them."""
    published(world, 2)
    _close(world)
    cursor = world.connection.execute(
        f"SELECT {_CURSOR} FROM outbox.progress WHERE name = %s".encode(), (NAME,)
    ).fetchone()
    assert cursor is not None
    published(world, 3)
    _close(world)
    world.connection.execute(_FORGET.encode(), (SHARD, cursor[0]))
    world.connection.execute(
        f"UPDATE outbox.progress SET ({_CURSOR}) = (%s, %s, %s, %s, %s, %s)"
        " WHERE name = %s".encode(),
        (*cursor, NAME),
    )
    _run(world)
    assert world.one("SELECT count(*) FROM outbox.op_message WHERE decided_by = 5") == 3


def delivered_at_least_once_for_a_time(world: RelayWorld) -> None:
    """Switch the delivery mode on, publish, and switch it off again."""
    world.delivery = "at_least_once"
    published(world, 3)
    world.delivery = "exactly_once"
    published(world, 3)


def _run(world: RelayWorld) -> None:
    """Drain the shard with a new relay: what an older one had saved late is stored."""
    assert drain(world.relay_again()).phase is Phase.RUN
    _close(world)


def _close(world: RelayWorld) -> None:
    for relay in world.opened:
        relay.close()


def _identity(world: RelayWorld) -> Identity:
    row = world.connection.execute(
        "SELECT cluster_id, topic_id, pg_system_id FROM outbox.progress WHERE name = %s", (NAME,)
    ).fetchone()
    assert row is not None
    return Identity(*row)
