"""Builds a producer that publishes in SQL, in its own transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from urllib.parse import urlsplit
from uuid import UUID

import psycopg

from outbox.messages.message_id import shard_of
from outbox.postgres.sessions.connections import Connection
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld

PUBLISH = "SELECT outbox.publish('account', %s, %s, key => %s)"
WAITING = "SELECT count(*) FROM outbox.plain_message"
_ROLES = count(1)


@dataclass
class Shop:
    """A producer whose role may call only outbox.publish in our schema."""

    world: RelayWorld
    url: str
    role: str

    @property
    def key(self) -> str:
        """A key that the world's shard publishes."""
        keys = (f"member-{n}" for n in count())
        return next(k for k in keys if shard_of(self.world.topic, k.encode()) == SHARD)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a session of the producer and a transaction in it."""
        with psycopg.connect(self.url) as session, session.transaction():
            yield session

    def publish(self, session: Connection, value: bytes | None, key: str | None = None) -> UUID:
        """Publish one message in the session's transaction; return its id."""
        asked = (self.world.topic, value, key or self.key)
        row = session.execute(PUBLISH, asked).fetchone()
        assert row is not None
        return UUID(str(row[0]))

    def publish_alone(self, *values: bytes) -> None:
        """Publish and commit one message per value."""
        for value in values:
            with self.transaction() as session:
                self.publish(session, value)


@contextmanager
def open_shop(world: RelayWorld) -> Iterator[Shop]:
    """Yield a producer with its own role; the role is dropped at the end."""
    world.message()
    world.connection.execute("UPDATE outbox.installation SET shards = 16")
    role = f"shop_{next(_ROLES)}"
    world.connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'shop'".encode())
    world.connection.execute(
        "SELECT outbox.allow_publish(%s, 'account', %s)", (role, [world.topic])
    )
    parts = urlsplit(world.database_url)
    netloc = f"{role}:shop@{parts.netloc.rpartition('@')[2]}"
    yield Shop(world, parts._replace(netloc=netloc).geturl(), role)
    world.connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
