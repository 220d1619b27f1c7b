"""The context of a run for its nemeses: servers, programs, history and seed."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.history.writer import HistoryWriter
from chaos.profiles.profile import Profile
from chaos.programs.children import Programs
from chaos.servers.nodes import Brokers, PostgresNode
from chaos.servers.server_thread import ServerThread

if TYPE_CHECKING:
    from chaos.history.recovery import Recoveries
    from chaos.proxies.proxy_client import ProxyClient


@dataclass(slots=True, kw_only=True)
class ChaosContext:
    """One run, as its nemeses see it."""

    dir: Path
    profile: Profile
    seed: int
    history: HistoryWriter
    server_thread: ServerThread
    postgres: PostgresNode
    brokers: Brokers
    bootstrap: str
    """Kafka's address for programs, which is a proxy's if there is one"""
    database_url: str
    """PostgreSQL's address for programs; it stays the same when the primary moves"""
    processes: Programs
    recoveries: Recoveries
    topics: dict[str, int]
    """the partitions of every topic that has messages"""
    api_key: str = ""
    proxies: ProxyClient | None = None
    """has the links ``postgres``, ``kafka`` and ``check``; None without proxies in the profile"""
    postgres_alone: threading.Lock = field(default_factory=threading.Lock)
    """held while PostgreSQL is stopped, started or replaced"""
    brokers_alone: threading.Lock = field(default_factory=threading.Lock)
    """held while brokers are killed and started"""
    stop: threading.Event = field(default_factory=threading.Event)
    """set after the last fault"""

    @property
    def used_shards(self) -> list[int]:
        """Return the shards that have messages: a fault of another shard meets nothing."""
        return sorted(self.recoveries.shards_in_use)

    def random(self, name: str) -> random.Random:
        """Return a random generator for one purpose, derived from the run's seed."""
        return random.Random(f"{self.seed}/{name}")

    def database_moved(self) -> None:
        """Connect the programs to the new ``postgres``; raises RuntimeError without proxies."""
        if self.proxies is None:
            raise RuntimeError(
                "only a profile with proxies can move its programs to another server"
            )
        link = self.proxies.link("postgres")
        link.upstream(self.postgres.port)
        link.reset()
