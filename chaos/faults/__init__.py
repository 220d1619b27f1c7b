"""Everything that breaks a run, by kind; a new nemesis gets its line in ``NEMESES``."""

from __future__ import annotations

from typing import Final

from chaos.faults.brokers import BrokerKill
from chaos.faults.clock import Clock
from chaos.faults.database import BackendKill, LongTransaction, PostgresStop
from chaos.faults.disk import DiskFull
from chaos.faults.endpoints import EndpointZoo
from chaos.faults.failover import Failover
from chaos.faults.frames import KafkaFrames, PostgresPackets
from chaos.faults.links import Network
from chaos.faults.nemesis import Nemesis
from chaos.faults.processes import Kill, Pause
from chaos.faults.restore import Restore

NEMESES: Final[tuple[type[Nemesis], ...]] = (
    Kill,
    Pause,
    PostgresStop,
    BackendKill,
    LongTransaction,
    BrokerKill,
    Network,
    KafkaFrames,
    PostgresPackets,
    EndpointZoo,
    Failover,
    Restore,
    Clock,
    DiskFull,
)


def nemeses_by_kind() -> dict[str, Nemesis]:
    """Return one nemesis for each kind of fault; they share their instances."""
    made = [nemesis() for nemesis in NEMESES]
    return {kind: nemesis for nemesis in made for kind in sorted(nemesis.kinds)}
