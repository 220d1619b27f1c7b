"""The order of each key's commits, while Kafka refuses records and relays die."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Iterable

import pytest

from tests.fixtures_kafka import make_topic, set_max_message_bytes
from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

KEYS, ROUNDS, FLUSH = 200, 2, 50
REFUSED_KEYS = 2
"""The first message of this number of keys is larger than its topic accepts for now."""
LIMIT, LARGE, USUAL = 200_000, 250_000, 1_048_588
DEATHS = ["relay.after_data_flush=kill#2", "relay.after_hold=kill#1"]
HELD = "SELECT count(*) FROM outbox.held_record WHERE shard = 3 AND released_at IS NULL"


def value(number: int) -> bytes:
    """Return a number's value, too large for the topic if it begins a refused key."""
    step = KEYS // REFUSED_KEYS
    return b"%d" % number + b"." * (LARGE if number < KEYS and number % step == 0 else 0)


def commit_in_turn(world: RelayWorld, numbers: Iterable[int]) -> None:
    """Commit numbered messages, a key at most once a flush, a flush after the other's answer."""
    template, waiting = world.message(), list(numbers)
    while waiting:
        flush, waiting = waiting[:FLUSH], waiting[FLUSH:]
        world.commit(*(replace(template, key=b"%d" % (n % KEYS), value=value(n)) for n in flush))


@pytest.mark.deep
def test_a34_a_committed_before_b_is_read_before_b_whatever_kafka_refuses_and_whoever_dies(
    world: RelayWorld,
) -> None:
    limit = {"max.message.bytes": str(LIMIT)}
    world.topic = make_topic(world.bootstrap_servers, partitions=1, config=limit)
    for turn, death in enumerate(DEATHS):
        commit_in_turn(world, range(turn * KEYS, (turn + 1) * KEYS))
        with world.process(death) as process:
            assert process.wait(timeout=60) == -signal.SIGKILL
    relay = world.relay()
    drain(relay)
    assert world.one(HELD) == REFUSED_KEYS * ROUNDS
    set_max_message_bytes(world.bootstrap_servers, world.topic, USUAL)

    def freed() -> bool:
        world.connection.execute(
            "UPDATE outbox.held_record SET next_attempt_at = clock_timestamp() WHERE shard = 3"
        )
        drain(relay)
        return not world.one(HELD)

    until(freed, seconds=60)
    by_key = defaultdict[bytes | None, list[int]](list)
    for record in world.records(KEYS * ROUNDS):
        by_key[record.key].append(int((record.value or b"").rstrip(b".")))
    assert by_key == {
        b"%d" % key: [key + turn * KEYS for turn in range(ROUNDS)] for key in range(KEYS)
    }
