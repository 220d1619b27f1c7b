"""Kills Kafka brokers, one or two at once, and lets a topic refuse large records."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from chaos.context import Context
from chaos.schedule import Fault
from outbox.errors import DatabaseUnavailable, NotHeld
from outbox.messages.message_id import parse_message_id
from outbox.operators.bulk_actions import BulkKind
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.held_admin import PostgresHeldAdmin
from outbox.postgres.sessions.connections import make_pool

READY_SECONDS: Final = 180.0
TRY_SECONDS: Final = 300.0
ASK_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.5
HELD_SECONDS: Final = 60.0
LARGEST: Final = 1000
"""The limit in bytes of a topic that refuses by size: a third of the values is larger."""
LIMIT: Final = "max.message.bytes"
HELD: Final = "SELECT count(*) FROM outbox.held_record WHERE released_at IS NULL"
MOST_RELEASED: Final = 10_000
_NEVER: Final = threading.Event()


def kill_brokers(context: Context, fault: Fault) -> bool:
    """Kill ``one`` broker or ``two`` (SIGKILL) and start them after the fault's seconds."""
    with context.brokers_alone:
        chance = context.random(f"brokers/{fault.at}")
        killed = chance.sample(context.brokers, 2 if fault.target == "two" else 1)
        for broker in killed:
            broker.kill()
        context.stop.wait(fault.seconds)
        for broker in killed:
            context.server_thread.do(broker.launch)
        for broker in killed:
            broker.wait_ready(READY_SECONDS)
        return True


def refuse_size(context: Context, fault: Fault) -> bool:
    """Let a topic refuse large records until the relay holds some; then allow and release them."""
    try:
        _until_done(lambda: _limit(context, fault.target, LARGEST))
        deadline, met = monotonic() + HELD_SECONDS, False
        while not met and monotonic() < deadline and not context.stop.wait(PAUSE_SECONDS):
            met = _held(context) > 0
        context.stop.wait(fault.seconds)
    finally:
        _until_done(lambda: _limit(context, fault.target, None))
        release(context)
    return met


def release(context: Context) -> None:
    """Release every refused record, as ``outbox held release`` does."""
    _until_done(lambda: asyncio.run(_release(context.postgres.dsn())))


async def _release(database_url: str) -> None:
    action = OperatorAction(operator="chaos", reason="Kafka accepts it again", key_id=None)
    async with make_pool(database_url, "chaos", pool_max=1, pool_min=1) as pool:
        held = PostgresHeldAdmin(pool)
        for each in await held.list_held(limit=MOST_RELEASED, refused_only=True):
            with suppress(NotHeld):
                await held.settle(BulkKind.RELEASE_HELD, *parse_message_id(each.message_id), action)


def _held(context: Context) -> int:
    try:
        with psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection:
            row = connection.execute(HELD).fetchone()
    except psycopg.Error:
        return 0
    return int(row[0]) if row else 0


def _limit(context: Context, topic: str, size: int | None) -> None:
    how = AlterConfigOpType.DELETE if size is None else AlterConfigOpType.SET
    text = None if size is None else str(size)
    entry = ConfigEntry(LIMIT, text, incremental_operation=how)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": context.bootstrap, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(timeout=ASK_SECONDS)


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
