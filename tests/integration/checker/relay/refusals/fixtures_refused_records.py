"""A topic that refuses large records, and what is held for it."""

from __future__ import annotations

from outbox.messages.manifest import Manifest, decode
from outbox.messages.message_id import HalfId
from tests.fixtures_kafka import make_topic, read_committed, set_max_message_bytes
from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until

LARGE = 5000
SMALLEST = 2000
USUAL = 1_048_588


def large(number: int) -> bytes:
    """Return a value that a topic with a low ``max.message.bytes`` refuses."""
    return b"%d" % number + b"." * LARGE


def lower(world: RelayWorld) -> None:
    """Create a topic that accepts only small records from the start."""
    limit = {"max.message.bytes": str(SMALLEST)}
    world.topic = make_topic(world.bootstrap_servers, partitions=1, config=limit)


def raise_again(world: RelayWorld) -> None:
    """Let the topic accept large records again, and make the relay retry at its next read."""
    set_max_message_bytes(world.bootstrap_servers, world.topic, USUAL)
    due_now(world)


def due_now(world: RelayWorld) -> None:
    """Make every held record due."""
    world.connection.execute(
        "UPDATE outbox.held_record SET next_attempt_at = clock_timestamp() WHERE shard = 3"
    )


def commit(world: RelayWorld, key: bytes | None, *values: bytes) -> list[HalfId]:
    """Commit messages of one key, one a flush."""
    template = world.message(key=key)
    return [world.commit(replace(template, value=value))[0] for value in values]


def open_rows(world: RelayWorld) -> int:
    """Return the number of records that are held."""
    return int(
        world.one(
            "SELECT count(*) FROM outbox.held_record"
            " WHERE shard = 3 AND released_at IS NULL AND dropped_at IS NULL"
        )
    )


def heads(world: RelayWorld, expected: int) -> list[bytes]:
    """Return the numbers that the values begin with, in order."""
    return [(value or b"").rstrip(b".") for value in world.values(expected)]


def manifests(world: RelayWorld, expected: int) -> list[Manifest]:
    """Return the manifests, as soon as there are so many."""
    found = read_committed(world.bootstrap_servers, world.progress_topic, expected)
    return [decode(bytes(message.value() or b"")) for message in found]


def drain_until_free(world: RelayWorld) -> None:
    """Let a relay continue until nothing is held."""
    relay = world.relay()

    def freed() -> bool:
        due_now(world)
        drain(relay)
        return open_rows(world) == 0

    until(freed, seconds=60)
    relay.close()


def drops(world: RelayWorld, reason: str) -> float:
    """Return how many producers the relay has dropped for a reason."""
    labels = {"reason": reason}
    return world.metrics.registry.get_sample_value("outbox_relay_drops_total", labels) or 0.0
