"""Kills Kafka brokers: one, two at once, or one with a certain role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.history.recovery import ALL_SHARDS
from chaos.profiles.schedule import Fault
from chaos.servers.probes import wait_until_true
from chaos.workload.plan import TOPICS
from devservers.kafka_wire import active_controller
from outbox.errors import KafkaUnavailable
from outbox.kafka.client_config import transactional_id
from outbox.kafka.log_reader import KafkaLogReader
from outbox.reconciliation.log import LogEnd, Partition
from outbox.settings.catalogue import Settings

METADATA_SECONDS: Final = 5.0
TRANSACTIONS: Final = "__transaction_state"
FAILPOINTS: Final = "OUTBOX_FAILPOINTS"
WAIT_BEFORE_COMMIT: Final = "relay.before_commit=sleep:5000"
"""Longer than the cluster needs to notice a dead broker, shorter than a transaction may last."""
OPEN_SECONDS: Final = 30.0
MORE_SECONDS: Final = 2.0
GROWN_SECONDS: Final = 20.0
LEADERLESS_SECONDS: Final = 15.0
LOOK_SECONDS: Final = 0.1
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
    """Choose the coordinator of the transactions of one shard that has messages."""
    shard = context.random(f"coordinator/{fault.at}").choice(context.used_shards)
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

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Keep the brokers down for the fault's seconds."""
        with context.brokers_alone:
            places = VICTIMS[fault.kind](context, fault)
            if not places:
                return {"skipped": "the broker with this role is unknown"}
            began = monotonic()
            context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
            for place in places:
                context.brokers[place].kill()
            context.stop.wait(fault.seconds)
            context.brokers.start(places)
            down = round(monotonic() - began, 3)
            return {"brokers": list(places), "down_seconds": down, "met": True}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the brokers are running again."""


class LeaderlessEnd:
    """Lets relays end their transactions while partitions of them have no leader.

    Relays wait between flush and commit. Then every broker but the first dies, which is the only
    controller. ``leaderless_commit``: the relays go on and commit, and die later, in the middle of
    the next transactions there. ``leaderless_fence``: they die too, and successors fence them.
    """

    kinds = frozenset({"leaderless_commit", "leaderless_fence"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Kill the brokers and keep them down for the fault's seconds."""
        with context.brokers_alone:
            try:
                _restart_checkers(context, WAIT_BEFORE_COMMIT)
                opened = _kill_when_open(context)
                context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
                leaderless = wait_until_true(
                    lambda: _leaderless(context), LEADERLESS_SECONDS, context.stop, LOOK_SECONDS
                )
                if fault.kind == "leaderless_fence":
                    _restart_checkers(context)
                context.stop.wait(fault.seconds)
            finally:
                context.brokers.start(_mortal(context))
            if fault.kind == "leaderless_commit":
                _wait_grown(context, opened)
            _restart_checkers(context)
            return {"open": len(opened), "met": bool(opened and leaderless)}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the brokers are running again."""


def _kill_when_open(context: ChaosContext) -> Mapping[Partition, int]:
    """Kill the brokers once transactions are open; return the ends of their partitions."""
    opened: dict[Partition, int] = {}

    def has_open() -> bool:
        opened.update(_open(context))
        return bool(opened)

    wait_until_true(has_open, OPEN_SECONDS, context.stop, LOOK_SECONDS)
    context.stop.wait(MORE_SECONDS)
    opened.update(_open(context))
    for place in _mortal(context):
        context.brokers[place].kill()
    return opened


def _wait_grown(context: ChaosContext, opened: Mapping[Partition, int]) -> None:
    """Wait until a next transaction has records in each of these partitions."""
    log = KafkaLogReader(context.bootstrap)

    def grown() -> bool:
        try:
            ends = log.offsets(opened, LogEnd.HIGH_WATERMARK).offsets
        except KafkaUnavailable:
            return False
        return all(ends.get(each, 0) > end for each, end in opened.items())

    wait_until_true(grown, GROWN_SECONDS, context.stop, LOOK_SECONDS)


def _mortal(context: ChaosContext) -> Sequence[int]:
    """Return the places of the brokers that may die: all but the first."""
    return range(1, len(context.brokers))


def _restart_checkers(context: ChaosContext, failpoint: str = "") -> None:
    """Kill every checker; the next lives have this failpoint beside the profile's."""
    always = context.profile.settings.get(FAILPOINTS, "")
    for child in context.processes.of("checker"):
        child.failpoint = ",".join(each for each in (always, failpoint) if each)
        child.kill()


def _open(context: ChaosContext) -> Mapping[Partition, int]:
    """Return the ends of the partitions that a mortal broker leads and whose transactions are open.

    Nothing while Kafka does not answer.
    """
    log = KafkaLogReader(context.bootstrap)
    mortal = [context.brokers[place].node_id for place in _mortal(context)]
    with suppress(KafkaException, KafkaUnavailable):
        led = [
            Partition(topic, number)
            for topic in context.topics
            for number, leader in _leaders(context, topic).items()
            if leader in mortal
        ]
        ends = log.offsets(led, LogEnd.HIGH_WATERMARK).offsets
        stable = log.offsets(led, LogEnd.LAST_STABLE).offsets
        return {each: ends[each] for each, at in stable.items() if at < ends.get(each, at)}
    return {}


def _leaderless(context: ChaosContext) -> bool:
    """Return whether a partition has no leader; False while Kafka does not answer."""
    with suppress(KafkaException):
        return any(-1 in _leaders(context, topic).values() for topic in context.topics)
    return False


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
