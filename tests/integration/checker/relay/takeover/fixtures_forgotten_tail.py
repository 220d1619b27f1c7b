"""A PostgreSQL that has forgotten its newest commits."""

from __future__ import annotations

from outbox.messages.message_id import HalfId
from tests.integration.checker.relay.fixtures_relay import RelayWorld

PROGRESS = "position, position_n, manifest_offset, batch_no, crc, gen"


def forget_tail(world: RelayWorld, progress: tuple[object, ...], *half_ids: HalfId) -> None:
    """Reset PostgreSQL: these ids undecided, the cursor before them."""
    for statement in (
        "DELETE FROM outbox.op_message WHERE half_id = ANY (%s)",
        "DELETE FROM outbox.commit_log WHERE half_ids && %s::int8[]",
        "DELETE FROM outbox.publication_log WHERE half_ids && %s::int8[]",
    ):
        world.connection.execute(statement.encode(), (list(half_ids),))
    world.connection.execute(
        f"UPDATE outbox.progress SET ({PROGRESS}) = (%s, %s, %s, %s, %s, %s)".encode(),
        progress,
    )


def progress_of(world: RelayWorld) -> tuple[object, ...]:
    """Return the stored row of the shard, for ``forget_tail``."""
    row = world.connection.execute(
        f"SELECT {PROGRESS} FROM outbox.progress WHERE name = 'relay:3'".encode()
    ).fetchone()
    assert row is not None
    return tuple(row)
