"""A standby of a run's PostgreSQL: it follows by streaming and can be promoted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg

from chaos.servers.nodes import PostgresNode
from chaos.servers.postgres_copies import add_file, copy_running
from chaos.servers.server_thread import ServerThread

NAME: Final = "standby"
FOLLOW_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.02
STATE: Final = f"SELECT sync_state FROM pg_stat_replication WHERE application_name = '{NAME}'"
CAUGHT_UP: Final = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
"""Sent to the standby: the primary gets the replayed position only every ten seconds."""


class PrimaryAndStandby:
    """A running primary and a standby that is copied from it."""

    def __init__(self, primary: PostgresNode, home: Path, server_thread: ServerThread) -> None:
        """Prepare a standby without starting it."""
        self.primary = primary
        self.standby = PostgresNode(home, server_thread)

    def follow(self) -> None:
        """Copy the primary, start the standby and wait until it has caught up with this moment."""
        copy_running(self.primary, self.standby)
        add_file(self.standby.data_dir / "standby.signal", "")
        add_file(
            self.standby.data_dir / "postgresql.auto.conf",
            f"primary_conninfo = '{self._conninfo()}'\n",
        )
        self.standby.start()
        wanted = _ask(self.primary, "SELECT pg_current_wal_lsn()::text")
        _wait(lambda: bool(_ask(self.standby, CAUGHT_UP, wanted)), "the standby to follow")

    def make_synchronous(self) -> None:
        """Make the standby synchronous: the primary acknowledges only what is durable on both."""
        self._set(self.primary, f"synchronous_standby_names = '{NAME}'")
        _wait(lambda: _ask(self.primary, STATE) == "sync", "the synchronous standby")

    def stop_following(self) -> None:
        """Disconnect the standby: it never gets later commits."""
        self._set(self.standby, "primary_conninfo = ''")
        receivers = "SELECT count(*) FROM pg_stat_wal_receiver"
        _wait(lambda: _ask(self.standby, receivers) == 0, "the end of the stream")

    def promote(self) -> PostgresNode:
        """Promote the standby and return it; the old primary must be dead."""
        assert _ask(self.standby, "SELECT pg_promote(true, 60)")
        return self.standby

    def _conninfo(self) -> str:
        parts = urlsplit(self.primary.dsn())
        return (
            f"host={parts.hostname} port={parts.port} user={parts.username}"
            f" password={parts.password} application_name={NAME}"
        )

    def _set(self, node: PostgresNode, setting: str) -> None:
        with psycopg.connect(node.dsn(), autocommit=True) as connection:
            # Even this connection may wait for an unavailable standby; it writes nothing.
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")


def _ask(node: PostgresNode, query: str, *parameters: object) -> Any:
    with psycopg.connect(node.dsn(), autocommit=True) as connection:
        row = connection.execute(query.encode(), parameters).fetchone()
    return None if row is None else row[0]


def _wait(happened: Callable[[], bool], what: str) -> None:
    pause, deadline = threading.Event(), monotonic() + FOLLOW_SECONDS
    while not happened():
        if monotonic() > deadline:
            raise TimeoutError(f"waited {FOLLOW_SECONDS:.0f} s for {what}")
        pause.wait(LOOK_SECONDS)
