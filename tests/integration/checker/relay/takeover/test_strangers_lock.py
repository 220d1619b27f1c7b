"""A stranger's role has a shard's lock: the relay waits for signs of life, then fences (F18)."""

from __future__ import annotations

import psycopg
import pytest

from outbox.kafka.progress_log import KafkaProgressLog
from outbox.relay.protocol import takeover
from outbox.relay.protocol.state import Found, Phase
from tests.fixtures_databases import as_role
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def test_a_relay_publishes_though_a_stranger_has_its_shards_lock(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "STALL_SECONDS", 1.0)
    with psycopg.connect(
        as_role(world.database_url, "outbox_publish"), autocommit=True
    ) as stranger:
        stranger.execute("SELECT pg_advisory_lock(1869968482, %s)", [SHARD])
        world.commit_values(b"one", b"two")
        first = world.relay()
        assert drain(first).phase is Phase.RUN
        assert world.values(2) == [b"one", b"two"]
        assert stranger.execute("SELECT true").fetchone() == (True,)


def test_of_two_relays_without_the_lock_the_later_one_fences_the_earlier(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "STALL_SECONDS", 0.0)
    with psycopg.connect(
        as_role(world.database_url, "outbox_publish"), autocommit=True
    ) as stranger:
        stranger.execute("SELECT pg_advisory_lock(1869968482, %s)", [SHARD])
        for value in (b"one", b"two", b"three"):
            world.commit_values(value)
            drain(world.relay())
        earlier, _, last = world.opened
        world.commit_values(b"four")
        assert earlier.run_once().published == 0
        drain(last)
        assert world.values(4) == [b"one", b"two", b"three", b"four"]


def test_a_relay_that_is_fenced_before_it_reads_the_manifests_adopts_none_of_its_successor(
    world: RelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes after the end that it knows is its successor's, and so is the next generation."""
    monkeypatch.setattr(takeover, "STALL_SECONDS", 0.0)
    read = KafkaProgressLog.read

    def read_late(log: KafkaProgressLog, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        monkeypatch.setattr(KafkaProgressLog, "read", read)
        drain(successor)
        return read(log, first, end)

    with psycopg.connect(
        as_role(world.database_url, "outbox_publish"), autocommit=True
    ) as stranger:
        stranger.execute("SELECT pg_advisory_lock(1869968482, %s)", [SHARD])
        world.commit_values(b"one")
        drain(world.relay())
        world.commit_values(b"two")
        fenced, successor = world.relay(), world.relay()
        monkeypatch.setattr(KafkaProgressLog, "read", read_late)
        while KafkaProgressLog.read is not read:
            fenced.run_once()
        world.commit_values(b"three")
        drain(successor)
    assert drain(world.relay_again()).phase is Phase.RUN
    assert world.values(3) == [b"one", b"two", b"three"]
