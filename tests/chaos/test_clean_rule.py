"""The CLEAN rule: an EndTxn that comes again in the next transaction harms nobody.

The same relays without the rule show that the stage is real: they lose and double.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from chaos.controls.broken_relays import RelayPlace
from chaos.controls.stale_end import (
    PERFORMED,
    SOUND_COMMIT,
    SOUND_GIVING_UP,
    TRUSTED_ABORT,
    TRUSTED_COMMIT,
    Case,
    play,
)
from outbox.postgres.sessions.connections import connect
from outbox.relay.protocol.state import SHARDS
from tests.chaos.conftest import ProxiedBroker
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

INVALID_PRODUCER_EPOCH = 47


@pytest.fixture
def world(database_url: str, proxied: ProxiedBroker) -> Iterator[RelayWorld]:
    """Yield a world of its own behind the proxy."""
    servers = proxied.broker.bootstrap_servers
    with connect(database_url, "test") as connection:
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
        yield RelayWorld(
            database_url,
            servers,
            make_topic(servers, partitions=1),
            make_topic(servers, partitions=SHARDS),
            connection,
        )


def play_in(world: RelayWorld, proxied: ProxiedBroker, case: Case) -> int | None:
    """Play a case with messages 0, 1 and then 2, 3, 4 in one batch."""
    place = RelayPlace(
        database_url=world.database_url,
        bootstrap_servers=world.bootstrap_servers,
        progress_topic=world.progress_topic,
        shard=SHARD,
    )
    numbers = count()

    def commit(messages: int) -> None:
        world.commit_values(*(b"%d" % next(numbers) for _ in range(messages)))

    return play(case, place, world.topic, proxied.link, commit)


def numbers_in(world: RelayWorld, expected: int) -> list[int]:
    """Return what a read_committed consumer sees."""
    return [int(value or b"") for value in world.values(expected)]


@pytest.mark.parametrize("case", [SOUND_COMMIT, SOUND_GIVING_UP], ids=lambda case: case.name)
def test_f5_a_stale_end_is_refused_and_each_message_is_published_once(
    world: RelayWorld, proxied: ProxiedBroker, case: Case
) -> None:
    assert play_in(world, proxied, case) == INVALID_PRODUCER_EPOCH
    assert numbers_in(world, 5) == [0, 1, 2, 3, 4]


def test_without_the_clean_rule_a_stale_commit_doubles(
    world: RelayWorld, proxied: ProxiedBroker
) -> None:
    assert play_in(world, proxied, TRUSTED_COMMIT) == PERFORMED
    assert numbers_in(world, 6) == [0, 1, 2, 2, 3, 4]


def test_without_the_clean_rule_a_stale_abort_loses_in_silence(
    world: RelayWorld, proxied: ProxiedBroker
) -> None:
    assert play_in(world, proxied, TRUSTED_ABORT) == PERFORMED
    assert world.one("SELECT batch_no FROM outbox.progress") == 3
    assert numbers_in(world, 2) == [0, 1]
