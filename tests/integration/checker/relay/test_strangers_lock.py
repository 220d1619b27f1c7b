"""A stranger's role has a shard's lock: the relay waits for signs of life, then fences (F18)."""

from __future__ import annotations

import psycopg
import pytest

from outbox.relay.protocol import takeover
from outbox.relay.protocol.state import Phase
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
