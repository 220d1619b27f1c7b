"""A PostgreSQL that nemeses kill and restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from chaos.servers.nodes import PostgresNode
from chaos.servers.server_thread import ServerThread
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.postgres, pytest.mark.chaos]

AT_WORK = "SELECT count(*) FROM generate_series(1, 10000000) AS each (n) WHERE n % 7 = 3"
BUSY = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = %s"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[PostgresNode]:
    """A separate running server."""
    with closing(ServerThread()) as server_thread:
        made = PostgresNode(tmp_path / "postgres", server_thread)
        made.start()
        yield made
        made.server.kill()


def test_a_killed_server_restarts_while_one_of_its_sessions_still_works(
    node: PostgresNode,
) -> None:
    worker = Thread(target=work, args=(node.server.database_url,))
    worker.start()
    with psycopg.connect(node.server.database_url, autocommit=True) as connection:
        wait_for(lambda: connection.execute(BUSY, [AT_WORK]).fetchone() == (1,), 30, 0.01)
        node.server.kill()
    node.start()
    with psycopg.connect(node.server.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    worker.join()


def work(database_url: str) -> None:
    """Prevent a session from noticing that its server has died."""
    with suppress(psycopg.OperationalError), psycopg.connect(database_url) as connection:
        connection.execute(AT_WORK)
