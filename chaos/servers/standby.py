"""A standby of a run's PostgreSQL: it follows by streaming and takes over when it is promoted."""

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
"""Asked of the standby: the primary hears of what was replayed only every ten seconds."""
GIVE_UP: Final = "SELECT {function}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class PrimaryAndStandby:
    """A running primary and the standby that is made of it."""

    def __init__(self, primary: PostgresNode, home: Path, keeper: ServerThread) -> None:
        """Prepare a standby; starts nothing."""
        self.primary = primary
        self.standby = PostgresNode(home, keeper)

    def follow(self) -> None:
        """Copy the primary, start the standby and wait until it has what the primary had then."""
        copy_running(self.primary, self.standby)
        add_file(self.standby.data_dir / "standby.signal", "")
        add_file(
            self.standby.data_dir / "postgresql.auto.conf",
            f"primary_conninfo = '{self._conninfo()}'\n",
        )
        self.standby.start()
        wanted = _ask(self.primary, "SELECT pg_current_wal_lsn()::text")
        _wait(lambda: bool(_ask(self.standby, CAUGHT_UP, wanted)), "the standby to follow")

    def be_synchronous(self) -> None:
        """From now on the primary acknowledges only what the standby has made durable."""
        self._set(self.primary, f"synchronous_standby_names = '{NAME}'")
        _wait(lambda: _ask(self.primary, STATE) == "sync", "the synchronous standby")

    def stop_following(self) -> None:
        """Cut the standby off: whatever is committed from now on it never has."""
        self._set(self.standby, "primary_conninfo = ''")
        receivers = "SELECT count(*) FROM pg_stat_wal_receiver"
        _wait(lambda: _ask(self.standby, receivers) == 0, "the end of the stream")

    def give_up_waits(self, function: str = "pg_cancel_backend") -> int:
        """End every wait for the standby: those commits count though it may lack them."""
        with psycopg.connect(self.primary.dsn(), autocommit=True) as connection:
            return connection.execute(GIVE_UP.format(function=function).encode()).rowcount

    def promote(self) -> PostgresNode:
        """Make the standby the primary and return it; the old one must be dead already."""
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
            # The connection may itself wait for a standby that is away: it writes nothing.
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
