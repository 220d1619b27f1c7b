"""Kills Kafka brokers: one, two at once, or one with a certain role."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg
from confluent_kafka.admin import AdminClient

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault
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

    The broker computes it as ``Utils.abs(id.hashCode()) % partitions``.
    """
    hashed = 0
    for letter in name:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _named(context: ChaosContext, fault: Fault) -> Sequence[int]:
    return [int(fault.target.rpartition("-")[2])]


def _two(context: ChaosContext, fault: Fault) -> Sequence[int]:
    return context.random(f"brokers/{fault.at}").sample(range(len(context.brokers)), 2)


def _leader(context: ChaosContext, fault: Fault) -> Sequence[int]:
    """Choose the leader of a data partition."""
    chance = context.random(f"leader/{fault.at}")
    leaders = _leaders(context, chance.choice(sorted(TOPICS)))
    return _places(context, leaders.get(chance.choice(sorted(leaders)), -1) if leaders else -1)


def _coordinator(context: ChaosContext, fault: Fault) -> Sequence[int]:
    """Choose the coordinator of the transactions of one shard's relay."""
    shard = context.random(f"coordinator/{fault.at}").choice(ALL_SHARDS)
    leaders = _leaders(context, TRANSACTIONS)
    installation = _installation(context)
    if not leaders or installation is None:
        return []
    prefix = str(Settings.model_fields["relay_transactional_id_prefix"].default)
    name = transactional_id(prefix, installation, shard)
    return _places(context, leaders.get(partition_of_transactions(name, len(leaders)), -1))


def _controller(context: ChaosContext, fault: Fault) -> Sequence[int]:
    """Choose the node that leads the controllers' quorum."""
    for broker in context.brokers:
        with suppress(OSError):
            return _places(context, active_controller(broker.port))
    return []


VICTIMS: Final[Mapping[str, Callable[[ChaosContext, Fault], Sequence[int]]]] = {
    "broker_kill": _named,
    "broker_kill_two": _two,
    "broker_kill_leader": _leader,
    "broker_kill_coordinator": _coordinator,
    "broker_kill_controller": _controller,
}
"""Return the places of the brokers to kill, by kind; none if that is unknown now."""


class BrokerKill:
    """Kills Kafka brokers (SIGKILL) and starts them again; one fault at a time."""

    kinds = frozenset(VICTIMS)

    def __init__(self) -> None:
        self._alone = threading.Lock()

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Keep the brokers down for the fault's seconds."""
        with self._alone:
            places = VICTIMS[fault.kind](context, fault)
            if not places:
                return {"skipped": "the broker with this role is unknown"}
            began = monotonic()
            context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
            for place in places:
                context.brokers[place].kill()
            context.stop.wait(fault.seconds)
            context.brokers.start(places)
            return {"brokers": list(places), "down_seconds": round(monotonic() - began, 3)}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the brokers are running again."""


def _leaders(context: ChaosContext, topic: str) -> dict[int, int]:
    """Return the leading node of each partition, -1 for none."""
    admin = AdminClient({"bootstrap.servers": context.bootstrap, "log_level": 0})
    known = admin.list_topics(topic, timeout=METADATA_SECONDS).topics[topic]
    return {number: partition.leader for number, partition in known.partitions.items()}


def _installation(context: ChaosContext) -> object | None:
    with psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection:
        row = connection.execute(INSTALLATION).fetchone()
    return row[0] if row else None


def _places(context: ChaosContext, node_id: int) -> Sequence[int]:
    return [place for place, broker in enumerate(context.brokers) if broker.node_id == node_id]
