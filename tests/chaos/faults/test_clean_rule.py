"""The CLEAN rule: an EndTxn that arrives again in the next transaction has no effect.

The same relays without the rule lose and double messages, which shows that the test is effective.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from tests.chaos.conftest import LinkedBroker
from tests.chaos.faults.fixtures_broken_relays import RelayPlace
from tests.chaos.faults.fixtures_stale_frame import (
    PERFORMED,
    SOUND_COMMIT,
    SOUND_GIVING_UP,
    TRUSTED_ABORT,
    TRUSTED_COMMIT,
    StaleFrameCase,
    play,
)
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

INVALID_PRODUCER_EPOCH = 47


@pytest.fixture
def context(database_url: str, linked: LinkedBroker) -> Iterator[RelayWorld]:
    """Yield a new shard and topic behind the link."""
    servers = linked.broker.bootstrap_servers
    with connect(database_url, "test") as connection:
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
        yield RelayWorld(
            database_url,
            servers,
            make_topic(servers, partitions=1),
            make_topic(servers, partitions=SHARDS),
            connection,
        )


def play_in(context: RelayWorld, linked: LinkedBroker, case: StaleFrameCase) -> int:
    """Run a case with messages 0, 1 and then 2, 3, 4 in one batch."""
    place = RelayPlace(
        database_url=context.database_url,
        bootstrap_servers=context.bootstrap_servers,
        progress_topic=context.progress_topic,
        shard=SHARD,
    )
    numbers = count()

    def commit(messages: int) -> None:
        context.commit_values(*(b"%d" % next(numbers) for _ in range(messages)))

    return play(case, place, context.topic, linked.link, commit)


def batches(context: RelayWorld) -> int:
    """Return how many batches the shard has had; a former life had some."""
    stored = "SELECT batch_no FROM outbox.progress WHERE name = %s"
    return int(context.one(stored, f"relay:{SHARD}") or 0)


def numbers_in(context: RelayWorld, expected: int) -> list[int]:
    """Return the records that a read_committed consumer reads."""
    return [int(value or b"") for value in context.values(expected)]


@pytest.mark.parametrize("case", [SOUND_COMMIT, SOUND_GIVING_UP], ids=lambda case: case.name)
def test_f5_a_stale_end_is_refused_and_each_message_is_published_once(
    context: RelayWorld, linked: LinkedBroker, case: StaleFrameCase
) -> None:
    assert play_in(context, linked, case) == INVALID_PRODUCER_EPOCH
    assert numbers_in(context, 5) == [0, 1, 2, 3, 4]


def test_without_the_clean_rule_a_stale_commit_doubles(
    context: RelayWorld, linked: LinkedBroker
) -> None:
    assert play_in(context, linked, TRUSTED_COMMIT) == PERFORMED
    assert numbers_in(context, 6) == [0, 1, 2, 2, 3, 4]


def test_without_the_clean_rule_a_stale_abort_loses_silently(
    context: RelayWorld, linked: LinkedBroker
) -> None:
    before = batches(context)
    assert play_in(context, linked, TRUSTED_ABORT) == PERFORMED
    assert batches(context) == before + 3
    assert numbers_in(context, 2) == [0, 1]
