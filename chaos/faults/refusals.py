"""Makes Kafka refuse records for good: their size, the right to write, or a topic that is gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any, Final

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault
from chaos.workload.late_commits import PAUSE_SECONDS, TRY_SECONDS, LateCommits
from chaos.workload.plan import Planned, late_commits
from outbox.errors import DatabaseUnavailable, NotHeld
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.held_admin import PostgresHeldAdmin
from outbox.postgres.sessions.connections import make_pool

AUTHORIZER: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:nobody",
}
"""Settings of a broker that can refuse a principal; what no rule names is allowed."""
LARGEST: Final = 1000
"""The limit in bytes of a topic that refuses by size: a third of the values is larger."""
ASK_SECONDS: Final = 10.0
HELD_SECONDS: Final = 180.0
"""How long a fault waits for the relay to hold a message: it is refused twice before that."""
REFUSING_WAYS: Final = ("refuse_size", "refuse_write")
REFUSALS: Final = (*REFUSING_WAYS, "refuse_topic")
MOST_RELEASED: Final = 10_000
MESSAGES: Final = 20
"""Messages that a fault commits to a topic that refuses them."""
HELD: Final = (
    "SELECT count(*) FROM outbox.held_record h JOIN outbox.topic t ON t.id = h.topic_id"
    " WHERE t.name = %s AND h.held_at >= %s"
)
Way = Callable[[AdminClient, str], None]
ALL_ALLOWED: Final = (AclOperation.ALL, AclPermissionType.ALLOW)
WRITE_DENIED: Final = (AclOperation.WRITE, AclPermissionType.DENY)
_NEVER: Final = threading.Event()


class Refusals:
    """Lets a topic refuse records until the relay holds some, and for the fault's seconds."""

    kinds = frozenset(REFUSING_WAYS)

    def __init__(self) -> None:
        self._alone, self._numbers = threading.Lock(), count(1)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Prepare, forbid, commit, wait, and allow again; the relay then releases by itself."""
        with self._alone:
            client = f"refused-{next(self._numbers)}"
            items = late_commits(client, fault.target, MESSAGES, 2 * LARGEST)
            with _producer(context, items) as producer:
                producer.prepare()
                held = self._refuse(context, fault, producer)
        return {"topic": fault.target, "held": held, "met": bool(held)}

    def heal(self, context: ChaosContext) -> None:
        """Be the operator who releases what is still held: its next try may be minutes away."""
        if any(context.profile.has_fault(kind) for kind in REFUSALS):
            _until_done(lambda: asyncio.run(_release(context.postgres.dsn())))

    def _refuse(self, context: ChaosContext, fault: Fault, producer: LateCommits) -> int:
        """Forbid, commit one message after another until one is held, and allow again.

        A broker obeys a moment after it has confirmed the change, so the first may pass.
        """
        began = _ask(context, "SELECT clock_timestamp()")
        forbid, allow = WAYS[fault.kind]
        _until_done(lambda: forbid(_admin(context), fault.target))
        try:
            held = _held_in_time(context, fault.target, began, lambda: producer.commit(1))
            producer.commit(MESSAGES)
            context.stop.wait(fault.seconds)
        finally:
            _until_done(lambda: allow(_admin(context), fault.target))
        return held


class DeletedTopic:
    """Deletes a topic between prepare and COMMIT of some messages, and creates it again later.

    Each fault has a topic of its own, with no record yet: what a deletion takes away with it is no
    question to the relay.
    """

    kinds = frozenset({"refuse_topic"})

    def __init__(self) -> None:
        self._numbers = count(1)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Be a producer whose topic is deleted; met: the relay held its messages."""
        client = f"doomed-{next(self._numbers)}"
        topic = f"chaos.{client}"
        began = _ask(context, "SELECT clock_timestamp()")
        _until_done(lambda: _create(_admin(context), topic))
        context.topics[topic] = 1
        try:
            with _producer(context, late_commits(client, topic, MESSAGES)) as producer:
                producer.prepare()
                _until_done(lambda: _delete(_admin(context), topic))
                producer.commit(MESSAGES)
            held = _held_in_time(context, topic, began)
            context.stop.wait(fault.seconds)
        finally:
            _until_done(lambda: _create(_admin(context), topic))
        return {"topic": topic, "held": held, "met": bool(held)}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: a fault always creates its topic again."""


def _producer(context: ChaosContext, items: Sequence[Planned]) -> LateCommits:
    """Return a producer that calls whatever APIs live."""

    def ports() -> list[int]:
        return [child.port for child in context.processes.of("api")]

    return LateCommits(context.dir, context.api_key, ports, items)


async def _release(database_url: str) -> None:
    """Release every refused record, as ``outbox held release`` does."""
    action = OperatorAction(operator="chaos", reason="Kafka accepts it again", key_id=None)
    async with make_pool(database_url, "chaos", pool_max=1, pool_min=1) as pool:
        desk = PostgresHeldAdmin(pool)
        for held in await desk.list_held(limit=MOST_RELEASED, refused_only=True):
            with suppress(NotHeld):
                await desk.release_now(held.half_id, held.nonce, action)


def _held_in_time(
    context: ChaosContext, topic: str, began: object, meanwhile: Callable[[], object] = lambda: None
) -> int:
    """Wait until records of a topic are held; return their number, 0 after the limit."""
    held, deadline = 0, monotonic() + HELD_SECONDS
    while not held and monotonic() < deadline:
        meanwhile()
        _NEVER.wait(PAUSE_SECONDS)
        held = _ask(context, HELD, topic, began)
    return held


def _ask(context: ChaosContext, query: str, *parameters: object) -> Any:
    """Return the only value of a query; tries again while PostgreSQL is away."""
    found: list[Any] = []

    def ask() -> None:
        with psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection:
            found.extend(connection.execute(query.encode(), parameters).fetchone() or ())

    _until_done(ask)
    return found[0]


def _until_done(act: Callable[[], object]) -> None:
    """Do something, again while a store is away, also beyond the end of the faults."""
    deadline = monotonic() + TRY_SECONDS
    while True:
        try:
            act()
        except (KafkaException, psycopg.Error, TimeoutError, DatabaseUnavailable):
            if monotonic() > deadline:
                raise
            _NEVER.wait(PAUSE_SECONDS)
        else:
            return


def _admin(context: ChaosContext) -> AdminClient:
    return AdminClient({"bootstrap.servers": context.bootstrap, "log_level": 0})


def _limit(admin: AdminClient, topic: str) -> None:
    _configure(
        admin,
        ConfigEntry("max.message.bytes", str(LARGEST), incremental_operation=AlterConfigOpType.SET),
        topic,
    )


def _configure(admin: AdminClient, entry: ConfigEntry, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(timeout=ASK_SECONDS)


def _deny(admin: AdminClient, topic: str) -> None:
    """Forbid writing. A topic with any rule forbids what no rule allows, so the rest is allowed."""
    for rule in (ALL_ALLOWED, WRITE_DENIED):
        binding = AclBinding(*_rule(topic, *rule))
        admin.create_acls([binding])[binding].result(timeout=ASK_SECONDS)


def _unlimit(admin: AdminClient, topic: str) -> None:
    unset = ConfigEntry("max.message.bytes", None, incremental_operation=AlterConfigOpType.DELETE)
    _configure(admin, unset, topic)


def _permit(admin: AdminClient, topic: str) -> None:
    """Take back the rules, first the one that forbids."""
    for rule in (WRITE_DENIED, ALL_ALLOWED):
        found = AclBindingFilter(*_rule(topic, *rule))
        admin.delete_acls([found])[found].result(timeout=ASK_SECONDS)


def _rule(topic: str, operation: AclOperation, permission: AclPermissionType) -> tuple[Any, ...]:
    literal = ResourcePatternType.LITERAL
    return (ResourceType.TOPIC, topic, literal, "User:ANONYMOUS", "*", operation, permission)


WAYS: Final[Mapping[str, tuple[Way, Way]]] = {
    "refuse_size": (_limit, _unlimit),
    "refuse_write": (_deny, _permit),
}


def _create(admin: AdminClient, topic: str) -> None:
    """Create a topic unless it exists; one that is being deleted takes a moment."""
    if topic not in admin.list_topics(timeout=ASK_SECONDS).topics:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=ASK_SECONDS)


def _delete(admin: AdminClient, topic: str) -> None:
    """Delete a topic, and return once the broker does not show it any more."""
    if topic in admin.list_topics(timeout=ASK_SECONDS).topics:
        admin.delete_topics([topic])[topic].result(timeout=ASK_SECONDS)
        raise TimeoutError(f"{topic} is being deleted")
