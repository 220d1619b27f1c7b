"""What a nemesis may touch: the servers, the programs, the history and the seed of one run."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.history import HistoryWriter
from chaos.profiles import Profile
from chaos.programs.children import Programs
from chaos.servers.nodes import Brokers, PostgresNode
from chaos.servers.server_thread import ServerThread

if TYPE_CHECKING:
    from chaos.final_state.recovery import Recoveries
    from chaos.proxies.proxy_client import ProxyClient


@dataclass(slots=True, kw_only=True)
class ChaosContext:
    """One run, as its nemeses see it."""

    dir: Path
    profile: Profile
    seed: int
    history: HistoryWriter
    keeper: ServerThread
    postgres: PostgresNode
    brokers: Brokers
    bootstrap: str
    """how programs reach Kafka, through a proxy if there is one"""
    database_url: str
    """how programs reach PostgreSQL; it stays the same when the primary moves"""
    processes: Programs
    recoveries: Recoveries
    proxies: ProxyClient | None = None
    """links ``postgres``, ``kafka`` and ``check``, if the profile wants proxies"""
    postgres_alone: threading.Lock = field(default_factory=threading.Lock)
    """held by whoever stops, starts or replaces PostgreSQL"""
    stop: threading.Event = field(default_factory=threading.Event)
    """set when no more faults are to be performed"""

    def random(self, name: str) -> random.Random:
        """Return a generator of the run's seed for one purpose."""
        return random.Random(f"{self.seed}/{name}")

    def database_moved(self) -> None:
        """Lead the programs to where ``postgres`` is now; raises RuntimeError without proxies."""
        if self.proxies is None:
            raise RuntimeError("only a profile with proxies can lead its programs elsewhere")
        link = self.proxies.link("postgres")
        link.upstream(self.postgres.port)
        link.reset()
