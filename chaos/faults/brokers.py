"""Kafka brokers die hard: one, two at once, or the one on which something depends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg
from confluent_kafka.admin import AdminClient

from chaos.faults.nemesis import Facts
from chaos.run_context import ChaosContext
from chaos.schedule import Fault
from chaos.workload.plan import TOPICS
from devservers.kafka_wire import active_controller
from outbox.kafka.client_config import transactional_id
from outbox.settings.catalogue import Settings

ALL_SHARDS: Final = range(16)
METADATA_SECONDS: Final = 5.0
TRANSACTIONS: Final = "__transaction_state"
INSTALLATION: Final = "SELECT installation_id FROM outbox.installation"


def partition_of_transactions(name: str, partitions: int) -> int:
    """Return the partition whose leader coordinates a transactional id (ASCII).

    As the broker computes it: ``Utils.abs(id.hashCode()) % partitions``.
    """
    hashed = 0
    for letter in name:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _named(world: ChaosContext, fault: Fault) -> Sequence[int]:
    return [int(fault.target.rpartition("-")[2])]


def _two(world: ChaosContext, fault: Fault) -> Sequence[int]:
    return world.random(f"brokers/{fault.at}").sample(range(len(world.brokers)), 2)


def _leader(world: ChaosContext, fault: Fault) -> Sequence[int]:
    """Choose the leader of a data partition."""
    chance = world.random(f"leader/{fault.at}")
    leaders = _leaders(world, chance.choice(sorted(TOPICS)))
    return _places(world, leaders.get(chance.choice(sorted(leaders)), -1) if leaders else -1)


def _coordinator(world: ChaosContext, fault: Fault) -> Sequence[int]:
    """Choose the coordinator of the transactions of one shard's relay."""
    shard = world.random(f"coordinator/{fault.at}").choice(ALL_SHARDS)
    leaders = _leaders(world, TRANSACTIONS)
    installation = _installation(world)
    if not leaders or installation is None:
        return []
    prefix = str(Settings.model_fields["relay_transactional_id_prefix"].default)
    name = transactional_id(prefix, installation, shard)
    return _places(world, leaders.get(partition_of_transactions(name, len(leaders)), -1))


def _controller(world: ChaosContext, fault: Fault) -> Sequence[int]:
    """Choose the node that leads the controllers' quorum."""
    for broker in world.brokers:
        with suppress(OSError):
            return _places(world, active_controller(broker.port))
    return []


VICTIMS: Final[Mapping[str, Callable[[ChaosContext, Fault], Sequence[int]]]] = {
    "broker_kill": _named,
    "broker_kill_two": _two,
    "broker_kill_leader": _leader,
    "broker_kill_coordinator": _coordinator,
    "broker_kill_controller": _controller,
}
"""The places of the brokers to kill, by kind; none if it cannot be told now."""


class BrokerKill:
    """Kills Kafka brokers (SIGKILL) and starts them again; one fault at a time."""

    kinds = frozenset(VICTIMS)

    def __init__(self) -> None:
        self._alone = threading.Lock()

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Keep them away for the fault's seconds."""
        with self._alone:
            places = VICTIMS[fault.kind](world, fault)
            if not places:
                return {"skipped": "nobody knows which broker it is"}
            began = monotonic()
            world.recoveries.struck(fault.kind, fault.target, ALL_SHARDS)
            for place in places:
                world.brokers[place].kill()
            world.stop.wait(fault.seconds)
            world.brokers.start(places)
            return {"brokers": list(places), "down_seconds": round(monotonic() - began, 3)}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: they have been started again."""


def _leaders(world: ChaosContext, topic: str) -> dict[int, int]:
    """Return the leading node of each partition, -1 for none."""
    admin = AdminClient({"bootstrap.servers": world.bootstrap, "log_level": 0})
    known = admin.list_topics(topic, timeout=METADATA_SECONDS).topics[topic]
    return {number: partition.leader for number, partition in known.partitions.items()}


def _installation(world: ChaosContext) -> object | None:
    with psycopg.connect(world.postgres.dsn(), connect_timeout=2) as connection:
        row = connection.execute(INSTALLATION).fetchone()
    return row[0] if row else None


def _places(world: ChaosContext, node_id: int) -> Sequence[int]:
    return [place for place, broker in enumerate(world.brokers) if broker.node_id == node_id]
