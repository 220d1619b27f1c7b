"""Held records as operators see and settle them, and the status of their messages."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.errors import MessageNotFound, NotHeld
from outbox.messages.message import State
from outbox.messages.message_id import HalfId, Nonce, parse_message_id
from outbox.operators.bulk_actions import BulkKind
from outbox.operators.held_records import HeldRecord
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.held_admin import PostgresHeldAdmin
from tests.fixtures_kafka import set_max_message_bytes
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.checker.relay.refusals.fixtures_refused_records import (
    commit,
    drain_until_free,
    large,
    lower,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

ACTION = OperatorAction(operator="ann", reason="the limit was raised", key_id=None)


def settle(world: RelayWorld, kind: BulkKind, half_id: HalfId, nonce: Nonce) -> None:
    """Release or drop a held message on behalf of an operator."""
    world.ask(lambda pool: PostgresHeldAdmin(pool).settle(kind, half_id, nonce, ACTION))


def listed_of(world: RelayWorld, **asked: Any) -> list[HeldRecord]:
    """Return the held messages of the world's own topic."""
    found = world.ask(
        lambda pool: PostgresHeldAdmin(pool).list_held(limit=10, topic=world.topic, **asked)
    )
    return [*found]


def half_id_of(record: HeldRecord) -> HalfId:
    return parse_message_id(record.message_id)[0]


def nonce(world: RelayWorld, half_id: HalfId) -> Nonce:
    asked = "SELECT nonce FROM outbox.half_message WHERE half_id = %s"
    return Nonce(world.one(asked, half_id))


@pytest.fixture
def held(world: RelayWorld) -> tuple[HalfId, HalfId]:
    """Return a message that Kafka refuses and one that waits behind it."""
    lower(world)
    refused, waiting = commit(world, b"a", large(1), b"2")
    drain(world.relay())
    world.opened[-1].close()
    return refused, waiting


def test_held_records_are_listed_with_the_number_that_waits_behind_each(
    world: RelayWorld, held: tuple[HalfId, HalfId]
) -> None:
    listed = listed_of(world)
    assert [(half_id_of(each), each.attempts) for each in listed] == [(held[0], 1), (held[1], 0)]
    assert [each.waiting_behind for each in listed] == [1, 0]
    (refused,) = listed_of(world, refused_only=True)
    assert (refused.topic, refused.topic_wide) == (world.topic, False)
    (rest,) = listed_of(world, after=half_id_of(refused))
    assert half_id_of(rest) == held[1]


def test_a_released_message_is_published_and_has_its_offset(
    world: RelayWorld, held: tuple[HalfId, HalfId]
) -> None:
    first, own = held[0], nonce(world, held[0])
    set_max_message_bytes(world.bootstrap_servers, world.topic, 1_048_588)
    settle(world, BulkKind.RELEASE_HELD, held[1], nonce(world, held[1]))
    drain_until_free(world)
    status = world.status(first)
    assert status is not None
    assert (status.state, status.publish_error) == (State.PUBLISHED, None)
    assert status.publication is not None
    assert status.publication.topic == world.topic
    places = "SELECT released_offset FROM outbox.held_record WHERE half_id = %s"
    assert status.publication.offset == world.one(places, first)
    with pytest.raises(NotHeld):
        settle(world, BulkKind.DROP_HELD, first, own)
    audit = "SELECT (action, operator, reason)::text FROM outbox.audit_log WHERE operator = 'ann'"
    assert world.one(audit) == '(held.release,ann,"the limit was raised")'


def test_a_dropped_message_stays_committed_with_its_error_and_the_waiting_ones_are_published(
    world: RelayWorld, held: tuple[HalfId, HalfId]
) -> None:
    first, own = held[0], nonce(world, held[0])
    settle(world, BulkKind.DROP_HELD, first, own)
    drain_until_free(world)
    assert world.values(1) == [b"2"]
    status = world.status(first)
    assert status is not None
    assert (status.state, status.publish_error) == (State.COMMITTED, "MSG_SIZE_TOO_LARGE")
    (dropped,) = listed_of(world, dropped=True)
    assert (half_id_of(dropped), dropped.drop_reason) == (first, ACTION.reason)
    with pytest.raises(NotHeld):
        settle(world, BulkKind.RELEASE_HELD, first, own)
    assert world.one("SELECT count(*) FROM outbox.audit_log WHERE action = 'held.drop'") == 1


def test_a_message_that_was_never_held_is_not_found(
    world: RelayWorld, held: tuple[HalfId, HalfId]
) -> None:
    (other,) = commit(world, b"b", b"3")
    own = nonce(world, other)
    with pytest.raises(MessageNotFound):
        settle(world, BulkKind.DROP_HELD, other, own)
    with pytest.raises(MessageNotFound):
        settle(world, BulkKind.RELEASE_HELD, held[0], Nonce(0))
