"""Crashes of the relay's process: one record per message, in the order of its key."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Sequence

import pytest

from outbox.messages.record import Record
from tests.integration.checker.relay.fixtures_backlog import (
    KEYS,
    commit_backlog,
    published_up_to,
    wait_running,
)
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain, until

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

MESSAGES = 1000
UNLOCKED = "relay.lock=skip"
AMID_THE_THIRD = (10 + 1) + (10 + 1) + 10
"""The end of the topic after two batches of ten with their markers, and a third without."""
STEPS = [["before_commit"], ["after_commit"]]
"""Between them Kafka may have the whole batch, and PostgreSQL does not know it."""
OTHER_STEPS = [
    *("after_lock", "after_verify", "after_fence", "after_watermark", "after_replay"),
    *("after_select", "after_begin", "after_first_produce", "after_data_flush", "after_manifest"),
    "after_cursor",
]
"""In the order of a relay's work: up to the replay the batch of a former one is not accounted."""


def assert_once_and_in_order(records: Sequence[Record], count: int, keys: int = KEYS) -> None:
    """Each number once; the numbers of a key ascend."""
    numbers = [int((record.value or b"").rstrip(b".")) for record in records]
    assert sorted(numbers) == list(range(count))
    for key in range(keys):
        of_key = [n for n in numbers if n % keys == key]
        assert of_key == sorted(of_key)


def test_f1_a_relay_that_is_killed_again_and_again_publishes_each_message_once(
    world: RelayWorld,
) -> None:
    world.batch_max = 10
    commit_backlog(world, range(MESSAGES))
    chance, pause = random.Random(7), threading.Event()
    for _ in range(3):
        with world.process() as process:
            wait_running(process)
            pause.wait(chance.uniform(0.02, 0.4))
            process.kill()
    world.batch_max = 500
    drain(world.relay())
    assert_once_and_in_order(world.records(MESSAGES), MESSAGES)


def test_f4_a_relay_frozen_past_its_takeover_publishes_nothing_when_it_wakes(
    world: RelayWorld,
) -> None:
    world.batch_max = 10
    commit_backlog(world, range(1000))
    with world.process() as frozen:
        wait_running(frozen)
        until(lambda: published_up_to(world) > 0)
        frozen.send_signal(signal.SIGSTOP)
        world.terminate_holder()
        heir = world.relay()
        drain(heir)
        frozen.send_signal(signal.SIGCONT)
        commit_backlog(world, range(1000, 1200))
        drain(heir)
        assert_once_and_in_order(world.records(1200), 1200)
        assert frozen.poll() is None


def test_a35_a_relay_frozen_between_produce_and_commit_is_overtaken_and_fenced(
    world: RelayWorld,
) -> None:
    world.batch_max = 10
    commit_backlog(world, range(200))
    with world.process("relay.before_commit=sleep:5000#3") as frozen:
        wait_running(frozen)
        until(lambda: world.log_length() >= AMID_THE_THIRD)
        frozen.send_signal(signal.SIGSTOP)
        assert world.log_length() == AMID_THE_THIRD
        world.terminate_holder()
        heir = world.relay()
        drain(heir)
        commit_backlog(world, range(200, 300))
        drain(heir)
        frozen.send_signal(signal.SIGCONT)
        heir.close()
        wait_running(frozen)
        commit_backlog(world, range(300, 320))
        assert_once_and_in_order(world.records(320), 320)


@pytest.mark.deep
def test_f18_two_relays_on_one_shard_without_the_lock_harm_nothing(world: RelayWorld) -> None:
    world.batch_max = 10
    commit_backlog(world, range(600))
    with world.process(UNLOCKED) as one, world.process(UNLOCKED) as other:
        wait_running(one)
        wait_running(other)
        commit_backlog(world, range(600, 1200))
        until(lambda: published_up_to(world) == 1200, seconds=60)
    assert_once_and_in_order(world.records(1200), 1200)


@pytest.mark.parametrize(
    "points", [*STEPS, pytest.param(OTHER_STEPS, marks=pytest.mark.deep)], ids=" ".join
)
def test_a_relay_that_dies_at_a_step_of_its_protocol_loses_and_doubles_nothing(
    world: RelayWorld, points: Sequence[str]
) -> None:
    """The first relay died with a batch in Kafka that is not in its progress row."""
    world.batch_max = 10
    commit_backlog(world, range(100))
    for failpoint in ("after_commit=kill#3", *(f"{point}=kill#1" for point in points)):
        with world.process(f"relay.{failpoint}") as process:
            assert process.wait(timeout=60) == -signal.SIGKILL
    world.batch_max = 500
    drain(world.relay())
    assert_once_and_in_order(world.records(100), 100)
