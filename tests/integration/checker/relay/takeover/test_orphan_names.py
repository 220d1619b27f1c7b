"""Semantics 3.1: an id that only ``already_published`` knows answers an end as PUBLISHED."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from checker.maintenance.orphan_names import POLL_SECONDS, OrphanNames
from outbox.kafka.topic_scan import KafkaTopicScan
from outbox.messages.message import DecidedBy, End, Ended, NoSuchMessage, Resolution, State
from outbox.messages.message_id import HalfId, Nonce
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.seen_topics import PostgresSeenTopics
from outbox.postgres.relay.orphans import PostgresOrphans
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.checker.relay.takeover.fixtures_forgotten_tail import (
    forget_tail,
    progress_of,
)
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

NAMES = "SELECT producer_group, transaction_id FROM outbox.already_published WHERE shard = 3"


@dataclass(frozen=True)
class Lost:
    """A message that was published before PostgreSQL lost its tail."""

    half_id: HalfId
    nonce: Nonce
    group: int

    def end(self, decision: Resolution, **asked: object) -> End:
        """Return an end of it, by default one of its own group."""
        own = End(
            half_id=self.half_id,
            nonce=self.nonce,
            decision=decision,
            groups=frozenset({self.group}),
        )
        return replace(own, **asked)


@pytest.fixture
def lost(world: RelayWorld) -> Lost:
    """Return an orphan: published, its half and everything after it gone, found by recovery."""
    world.commit_values(b"kept")
    publish(world)
    before = progress_of(world)
    message = replace(world.message(b"lost"), transaction_id="t-1")
    (half_id,) = world.commit(message)
    nonce = world.one("SELECT nonce FROM outbox.half_message WHERE half_id = %s", half_id)
    publish(world)
    forget_tail(world, before, half_id)
    world.connection.execute("DELETE FROM outbox.half_message WHERE half_id = %s", (half_id,))
    publish(world)
    assert world.one("SELECT half_id FROM outbox.already_published WHERE shard = 3") == half_id
    return Lost(half_id, nonce, message.producer_group_id)


def publish(world: RelayWorld) -> None:
    """Let a relay take over and publish all commits."""
    drain(world.relay_again())


def names(world: RelayWorld, pool: Pool) -> OrphanNames:
    """Return the task, in this world."""
    records = KafkaTopicScan(world.bootstrap_servers, {}, world.progress_topic)
    return OrphanNames(PostgresOrphans(pool), PostgresSeenTopics(pool), records, FreeLocks())


async def test_an_id_that_only_already_published_knows_answers_an_end_as_published(
    world: RelayWorld, lost: Lost, pool: Pool
) -> None:
    store = PostgresHalfStore(pool)
    assert await store.end([lost.end(Resolution.COMMIT)]) == [NoSuchMessage()]
    assert await names(world, pool).step() == POLL_SECONDS
    assert world.connection.execute(NAMES).fetchall() == [("account", "t-1")]
    asked = [lost.end(each) for each in Resolution]
    for end, answer in zip(asked, await store.end(asked), strict=True):
        assert isinstance(answer, Ended)
        assert (answer.status.state, answer.already_ended) == (State.PUBLISHED, True)
        assert answer.status.op is not None
        assert answer.status.op.decision is Resolution.COMMIT
        assert answer.status.op.decided_by is DecidedBy.RECOVERY
        assert answer.conflict is (end.decision is Resolution.ROLLBACK)
    assert world.one("SELECT count(*) FROM outbox.op_message WHERE half_id = %s", lost.half_id) == 0


async def test_an_orphan_of_another_group_transaction_or_nonce_looks_like_an_unknown_one(
    world: RelayWorld, lost: Lost, pool: Pool
) -> None:
    await names(world, pool).step()
    foreign = [
        lost.end(Resolution.COMMIT, groups=frozenset({lost.group + 1})),
        lost.end(Resolution.COMMIT, transaction_id="t-2"),
        lost.end(Resolution.COMMIT, nonce=Nonce(lost.nonce ^ 1)),
    ]
    store = PostgresHalfStore(pool)
    assert await store.end(foreign) == [NoSuchMessage()] * 3
    own = [lost.end(Resolution.COMMIT, transaction_id="t-1")]
    assert isinstance((await store.end(own))[0], Ended)


async def test_an_orphan_whose_record_is_gone_stays_unknown_and_is_sought_once(
    world: RelayWorld, lost: Lost, pool: Pool
) -> None:
    world.connection.execute("DELETE FROM outbox.topic WHERE name = %s", (world.topic,))
    await names(world, pool).step()
    assert world.connection.execute(NAMES).fetchall() == [("", None)]
    assert await PostgresOrphans(pool).unnamed(1) == []
    store = PostgresHalfStore(pool)
    assert await store.end([lost.end(Resolution.COMMIT)]) == [NoSuchMessage()]
