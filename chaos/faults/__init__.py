"""All nemeses by kind of fault; a new nemesis gets its line in ``NEMESES``."""

from __future__ import annotations

from typing import Final

from chaos.faults.brokers import BrokerKill, LeaderlessEnd
from chaos.faults.clock import FalseClock
from chaos.faults.database import BackendKill, LongTransaction, OtherDatabase, PostgresStop
from chaos.faults.disk import DiskFull
from chaos.faults.failover import Failover
from chaos.faults.frames import KafkaFrames, PostgresPackets
from chaos.faults.hostile_endpoint import HostileEndpoint
from chaos.faults.leaves import PassLeaf
from chaos.faults.links import Network
from chaos.faults.nemesis import Nemesis
from chaos.faults.processes import Kill, Pause
from chaos.faults.refusals import DeletedTopic, Refusals
from chaos.faults.restore import Restore

NEMESES: Final[tuple[type[Nemesis], ...]] = (
    Kill,
    Pause,
    PostgresStop,
    BackendKill,
    LongTransaction,
    BrokerKill,
    LeaderlessEnd,
    Network,
    KafkaFrames,
    PostgresPackets,
    HostileEndpoint,
    Failover,
    Restore,
    FalseClock,
    DiskFull,
    PassLeaf,
    Refusals,
    DeletedTopic,
    OtherDatabase,
)


def nemeses_by_kind() -> dict[str, Nemesis]:
    """Return the nemesis of each kind of fault; one instance serves all its kinds."""
    made = [nemesis() for nemesis in NEMESES]
    return {kind: nemesis for nemesis in made for kind in sorted(nemesis.kinds)}
