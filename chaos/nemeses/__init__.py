"""Everything that breaks a run, by kind; a new nemesis gets its line in ``NEMESES``."""

from __future__ import annotations

from typing import Final

from chaos.nemeses.brokers import BrokerKill
from chaos.nemeses.clock import Clock
from chaos.nemeses.database import BackendKill, LongTransaction, PostgresStop
from chaos.nemeses.disk import DiskFull
from chaos.nemeses.endpoints import EndpointZoo
from chaos.nemeses.failover import Failover
from chaos.nemeses.frames import KafkaFrames, PostgresPackets
from chaos.nemeses.links import Network
from chaos.nemeses.processes import Kill, Pause
from chaos.nemeses.restore import Restore
from chaos.nemesis import Nemesis

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
