"""PostgreSQL and Kafka of a run: real servers that nemeses stop hard and restart."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, Protocol
from urllib.parse import urlsplit

import psycopg

from chaos.servers.server_thread import ServerThread
from devservers.errors import ServerFailed
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres

DATABASE: Final = "outbox"
READY_SECONDS: Final = 180.0
BROKER_READY_SECONDS: Final = 180.0
"""Two brokers that recover at once on a busy machine have been seen to take a minute."""
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

    def dsn(self, port: int | None = None) -> str:
        """Return the address of the database with its password; ``port`` is that of a proxy."""
        parts = urlsplit(self.server.url_of(DATABASE))
        host = f"{parts.username}:{parts.password}@127.0.0.1:{port or self.port}"
        return parts._replace(netloc=host).geturl()

    def dsn_of_role(self, role: str, port: int | None = None) -> str:
        """Let a role log in with a new password; return its address, as ``dsn`` does."""
        parts = urlsplit(self.server.url_of_role(role, DATABASE))
        host = f"{parts.username}:{parts.password}@127.0.0.1:{port or self.port}"
        return parts._replace(netloc=host).geturl()

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


class BrokerNode(Protocol):
    """One Kafka broker that can be killed."""

    @property
    def port(self) -> int:
        """The port of the server."""

    @property
    def node_id(self) -> int:
        """The node id in Kafka's answers."""

    def launch(self) -> None:
        """Start it without waiting."""

    def wait_ready(self) -> None:
        """Wait until it answers."""

    def kill(self) -> None:
        """Crash it (SIGKILL)."""


class Broker:
    """One broker of a run."""

    def __init__(self, server: EmbeddedKafka, server_thread: ServerThread) -> None:
        """Wrap a broker that has not been started."""
        self.server = server
        self._server_thread = server_thread

    @property
    def port(self) -> int:
        """The port of the server."""
        return self.server.port

    @property
    def node_id(self) -> int:
        """The node id in Kafka's answers."""
        return self.server.node_id

    def launch(self) -> None:
        """Start it without waiting."""
        self._server_thread.do(self.server.launch)

    def wait_ready(self) -> None:
        """Wait until it answers; raises ServerFailed."""
        self.server.wait_ready(BROKER_READY_SECONDS)

    def kill(self) -> None:
        """Crash it."""
        self.server.kill()


class Brokers(Sequence[BrokerNode]):
    """The brokers of a run, by number."""

    def __init__(self, nodes: Sequence[BrokerNode]) -> None:
        self._nodes = list(nodes)

    def __getitem__(self, place: int) -> BrokerNode:  # type: ignore[override]
        """Return one broker."""
        return self._nodes[place]

    def __len__(self) -> int:
        """Return the number of brokers."""
        return len(self._nodes)

    def __iter__(self) -> Iterator[BrokerNode]:
        """Yield each broker."""
        return iter(self._nodes)

    def start(self, places: Sequence[int]) -> None:
        """Start some brokers together and wait until they answer; raises ServerFailed."""
        started = [self._nodes[place] for place in places]
        for broker in started:
            broker.launch()
        for broker in started:
            broker.wait_ready()
