"""Batches whose logs are gone: their topic was deleted, deleted and created again, or is unknown.

Nobody can tell from Kafka whether consumers have seen such a record. It is named, not published
again, and what the shard does with all other topics goes on.
"""

from __future__ import annotations

import signal
from typing import Final

import pytest

from tests.aged_installation.fixtures_log_starts import write_foreign
from tests.fixtures_kafka import delete_all_records, delete_topic, make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until
from tests.integration.checker.relay.settlement.fixtures_unseen_batches import (
    REPAIRED,
    transaction,
    unconfirmed_seconds,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

VISIBLE: Final = "SELECT visible_batch_no FROM outbox.progress WHERE name = 'relay:3'"
LAST: Final = "SELECT batch_no FROM outbox.progress WHERE name = 'relay:3'"
REPLACED: Final = pytest.mark.parametrize("created", [False, True], ids=["deleted", "created"])


def publish_to_two_topics(world: RelayWorld) -> str:
    """Publish one message to a new topic and then one to the world's; return the new topic.

    The second manifest says where the first record is. The owner has not seen either of them.
    """
    kept, other = world.topic, make_topic(world.bootstrap_servers, partitions=1)
    relay = world.relay()
    for world.topic, value in ((other, b"other"), (kept, b"v")):
        world.commit_values(value)
        drain(relay)
    world.opened.pop().close()
    return other


def replace_topic(world: RelayWorld, topic: str, *, created: bool) -> None:
    delete_topic(world.bootstrap_servers, topic)
    if created:
        make_topic(world.bootstrap_servers, partitions=1, name=topic)


@REPLACED
def test_a_takeover_settles_batches_though_one_of_their_topics_is_gone(
    world: RelayWorld, created: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    other = publish_to_two_topics(world)
    replace_topic(world, other, created=created)
    drain(world.relay())
    assert world.one(VISIBLE) == world.one(LAST)
    assert unconfirmed_seconds(world) == 0
    assert "publication_unproven" in "".join(capsys.readouterr())
    assert world.one(REPAIRED) == 0


@pytest.mark.parametrize("last", [False, True], ids=["earlier batch", "last batch"])
def test_a_topic_that_was_created_again_and_has_grown_past_the_batch_proves_no_loss(
    world: RelayWorld, last: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest after a batch says where its records are; that of the last is not written."""
    other = publish_to_two_topics(world)
    replaced = world.topic if last else other
    replace_topic(world, replaced, created=True)
    write_foreign(world.bootstrap_servers, [(replaced, 0)], 20)
    drain(world.relay())
    assert world.one(VISIBLE) == world.one(LAST)
    assert world.one(REPAIRED) == 0
    assert "publication_unproven" in "".join(capsys.readouterr())


def test_a_crash_after_a_topic_was_deleted_does_not_stop_the_shard(world: RelayWorld) -> None:
    """An aborted manifest lists what is published next, so the last batches must be known."""
    delete_topic(world.bootstrap_servers, publish_to_two_topics(world))
    world.commit_values(b"next")
    with world.process("relay.before_commit=kill#1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    drain(world.relay(), rounds=40)
    assert world.values(2) == [b"v", b"next"]


def test_a_takeover_settles_batches_though_one_of_their_messages_is_not_stored_any_more(
    world: RelayWorld,
) -> None:
    """PostgreSQL has lost it, so its topic is not known."""
    publish_to_two_topics(world)
    world.connection.execute("DELETE FROM outbox.half_message WHERE value = 'other'")
    drain(world.relay())
    assert world.one(VISIBLE) == world.one(LAST)
    assert unconfirmed_seconds(world) == 0


@REPLACED
def test_a_topic_that_goes_before_its_batch_was_seen_does_not_stay_unconfirmed(
    world: RelayWorld, created: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = world.builder()
    relay = builder.open(3)
    world.opened.append(relay)
    kept, other = world.topic, make_topic(world.bootstrap_servers, partitions=1)
    with transaction(world) as stranger:  # stays open: nobody sees what follows in this log
        stranger.produce(other, b"stranger")
        assert stranger.flush(30) == 0
    for world.topic, value in ((other, b"other"), (kept, b"v")):
        world.commit_values(value)
        drain(relay)
    builder.visibility.look()
    assert world.one(VISIBLE) != world.one(LAST)
    replace_topic(world, other, created=created)

    def settled() -> bool:
        builder.visibility.look()
        drain(relay)
        return bool(world.one(VISIBLE) == world.one(LAST)) and unconfirmed_seconds(world) == 0

    until(settled)
    assert "publication_unproven" in "".join(capsys.readouterr())
    assert world.one(REPAIRED) == 0


def test_a_takeover_settles_batches_though_their_records_were_deleted_meanwhile(
    world: RelayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a short retention, or by an administrator: the second manifest says where they were."""
    relay = world.relay()
    for value in (b"1", b"2"):
        world.commit_values(value)
        drain(relay)
    delete_all_records(world.bootstrap_servers, world.topic, 0)
    world.commit_values(b"3")
    drain(world.relay_again(), rounds=20)
    assert world.values(1) == [b"3"]
    assert "publication_unproven" in "".join(capsys.readouterr())
