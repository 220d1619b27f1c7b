"""The CLEAN rule: an EndTxn that arrives again in the next transaction has no effect.

The broker would perform it if the relay used the handle of a doubtful commit again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from tests.chaos.conftest import LinkedBroker
from tests.chaos.faults.fixtures_stale_frame import Case, play
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

INVALID_PRODUCER_EPOCH = 47
COMMIT_TWICE = Case(gives_up=False, after_first=True)
BATCH_GIVEN_UP = Case(gives_up=True, after_first=False)


@pytest.fixture
def world(database_url: str, linked: LinkedBroker) -> Iterator[RelayWorld]:
    """Yield a new shard and topic behind the link."""
    servers = linked.servers
    topics = make_topic(servers, partitions=1), make_topic(servers, partitions=SHARDS)
    with connect(database_url, "test") as connection:
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
        yield RelayWorld(database_url, servers, *topics, connection)


def numbers_in(world: RelayWorld, expected: int) -> list[int]:
    """Return the records that a read_committed consumer reads."""
    return [int(value or b"") for value in world.values(expected)]


@pytest.mark.parametrize("case", [COMMIT_TWICE, BATCH_GIVEN_UP], ids=["commit", "given up"])
def test_f5_a_stale_end_is_refused_and_each_message_is_published_once(
    world: RelayWorld, linked: LinkedBroker, case: Case
) -> None:
    assert play(case, world, linked.link) == INVALID_PRODUCER_EPOCH
    assert numbers_in(world, 5) == [0, 1, 2, 3, 4]
