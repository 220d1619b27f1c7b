"""An aged installation on both stores: the whole life at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from tests.aged_installation import fixtures_relay_traits as relay
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_log_starts import log_starts_above_zero
from tests.aged_installation.fixtures_template import aged_database
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld

RELAY_TRAITS: tuple[Callable[[RelayWorld], None], ...] = (
    relay.published,
    relay.delivered_at_least_once_for_a_time,
    relay.halted_and_resolved,
    relay.went_through_history,
    relay.held_and_given_up,
)


@contextmanager
def aged(life: Life) -> Iterator[RelayWorld]:
    """Yield the world of an empty database and a running broker that have lived: every trait."""
    aged_database(life)
    servers = life.bootstrap_servers
    topics = (make_topic(servers, partitions=1), make_topic(servers, partitions=SHARDS))
    log_starts_above_zero(servers, topics)
    with connect(life.database_url, "aged") as connection:
        world = RelayWorld(life.database_url, servers, *topics, connection)
        for trait in RELAY_TRAITS:
            trait(world)
        yield world
        for each in world.opened:
            each.close()
