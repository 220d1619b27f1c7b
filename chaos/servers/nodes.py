"""PostgreSQL of a run: a real server that faults stop hard and restart."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import urlsplit

import psycopg

from chaos.servers.server_thread import ServerThread
from devservers.errors import ServerFailed
from devservers.postgres import EmbeddedPostgres

DATABASE: Final = "outbox"
READY_SECONDS: Final = 180.0
QUIT_SECONDS: Final = 10.0
OLD_SESSIONS: Final = ("Terminate any old server processes", "unexpected postmaster exit")
"""The last line of the log while sessions of a killed server still exist, or one of their own."""
_NEVER: Final = threading.Event()
SETTINGS: Final[Mapping[str, str]] = {
    # There are hundreds of logins per minute, and the loopback needs no costly password hash.
    "scram_iterations": "1",
    "max_wal_size": "1GB",
    "log_min_messages": "warning",
}


class PostgresNode:
    """One PostgreSQL server; the port never changes."""

    def __init__(
        self,
        data_dir: Path,
        server_thread: ServerThread,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare a server without starting it."""
        self.server = EmbeddedPostgres(data_dir, settings={**SETTINGS, **(settings or {})})
        self._server_thread = server_thread

    @property
    def port(self) -> int:
        """The port of the server."""
        return self.server.port

    @property
    def data_dir(self) -> Path:
        """The data folder of the cluster."""
        return self.server.home / "data"

    def dsn(self) -> str:
        """Return the address of the database with its password."""
        return self.server.url_of(DATABASE)

    def dsn_of_role(self, role: str) -> str:
        """Let a role log in with a new password; return its address."""
        return self.server.url_of_role(role, DATABASE)

    def start(self, seconds: float = READY_SECONDS) -> None:
        """Start and wait until it accepts connections; raises ServerFailed.

        A session of a killed server that still works prevents the next start.
        """
        deadline = monotonic() + seconds
        while True:
            self._server_thread.do(self.server.launch)
            try:
                return self.server.wait_ready(seconds)
            except ServerFailed as failure:
                early = any(line in str(failure) for line in OLD_SESSIONS)
                if not early or monotonic() > deadline:
                    raise
            _NEVER.wait(0.1)

    def stop_immediate(self) -> None:
        """Stop as ``pg_ctl stop -m immediate`` does (SIGQUIT): the next start recovers."""
        pid = self.server.pid
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)
        deadline = monotonic() + QUIT_SECONDS
        while self.server.exit_code() is None and monotonic() < deadline:
            _NEVER.wait(0.01)
        self.server.kill()

    def make_database(self) -> None:
        """Create the service's database; store the password with a cheap hash."""
        with psycopg.connect(self.server.database_url, autocommit=True) as connection:
            password = urlsplit(self.server.database_url).password or ""
            connection.execute(f"ALTER ROLE outbox PASSWORD '{password}'".encode())
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())
