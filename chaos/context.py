"""The context of a run for its faults: servers, programs, history and seed."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

from chaos.history import HistoryWriter
from chaos.profiles import Profile
from chaos.programs import Program
from chaos.servers.nodes import PostgresNode
from chaos.servers.server_thread import ServerThread
from devservers.kafka import EmbeddedKafka


@dataclass(slots=True, kw_only=True)
class Context:
    """One run, as its faults see it."""

    dir: Path
    profile: Profile
    seed: int
    history: HistoryWriter
    server_thread: ServerThread
    postgres: PostgresNode
    brokers: list[EmbeddedKafka]
    programs: dict[str, Program] = field(default_factory=dict)
    postgres_alone: threading.Lock = field(default_factory=threading.Lock)
    """held while PostgreSQL is stopped, started or replaced"""
    brokers_alone: threading.Lock = field(default_factory=threading.Lock)
    """held while brokers are killed and started"""
    stop: threading.Event = field(default_factory=threading.Event)
    """set after the last fault"""

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def of(self, role: str) -> list[Program]:
        """Return the programs of a role."""
        return [each for each in self.programs.values() if each.role == role]

    def random(self, name: str) -> random.Random:
        """Return a random generator for one purpose, derived from the run's seed."""
        return random.Random(f"{self.seed}/{name}")
