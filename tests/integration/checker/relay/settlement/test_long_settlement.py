"""A settlement that reads for long is no frozen owner."""

from __future__ import annotations

from contextlib import closing

import pytest

from checker.relay.settlement import BatchSettlement
from outbox.kafka.client_config import admin_client, consumer_config
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.messages.manifest import Position
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.relay.doubt import Doubt, SettledRecords
from outbox.relay.protocol.actions import Settle
from outbox.relay.protocol.state import Relay, Visible
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain, until

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

PROGRESS = """
SELECT visible_batch_no, visible_offset, position, position_n FROM outbox.progress WHERE name = %s
"""


class LongReading:
    """Reads the topics until another session has seen two signs of life."""

    def __init__(self, rival: PostgresCommitLog) -> None:
        self._rival = rival
        self.seen: set[float] = set()

    def read(self, doubt: Doubt, *, patient: bool) -> SettledRecords:
        """Wait as a standby does, with the same question."""

        def alive() -> bool:
            self.seen.add(self._rival.rival().signs.beat)
            return len(self.seen) >= 3

        until(alive, seconds=30)
        return SettledRecords((), frozenset(doubt.listed))


def seen_and_published(world: RelayWorld) -> tuple[Visible, Position]:
    """Return the last batch that consumers saw, and the position, as they are stored."""
    row = world.connection.execute(PROGRESS, [f"relay:{SHARD}"]).fetchone()
    assert row is not None
    batch_no, offset, xid, n = row
    return Visible(batch_no or 0, offset or 0), Position(xid, n)


def test_a_standby_sees_that_the_owner_lives_while_it_reads_its_last_batches(
    world: RelayWorld,
) -> None:
    drain(world.relay())
    world.opened.pop().close()
    visible, position = seen_and_published(world)
    world.commit_values(b"v")
    own, rival = (
        PostgresCommitLog(world.database_url, SHARD, batch_max=10, owner=name)
        for name in ("own", "rival")
    )
    admin = admin_client(world.bootstrap_servers, {})
    log = KafkaProgressLog(
        admin, consumer_config(world.bootstrap_servers, {}), SHARD, topic=world.progress_topic
    )
    with closing(own), closing(rival):
        reading = LongReading(rival)
        settlement = BatchSettlement(own, log, reading, beat_seconds=0.05)
        state = Relay(shard=SHARD, installation=own.installation()[0])
        settled = settlement.read(state, Settle(visible, log.bounds()[1], position))
    assert settled.proven
