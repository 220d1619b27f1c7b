"""The fixtures of these tests: a session that commits messages, and the commit log of a shard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import Connection, connect
from tests.integration.postgres.relay.fixtures_shard import SHARD


@pytest.fixture
def session(database_url: str) -> Iterator[Connection]:
    """Yield a session that commits messages."""
    with connect(database_url, "test") as opened:
        yield opened


@pytest.fixture
def commit_log(database_url: str) -> Iterator[PostgresCommitLog]:
    """Yield the commit log of the shard."""
    log = PostgresCommitLog(database_url, SHARD, batch_max=100, owner="test")
    yield log
    log.close()
