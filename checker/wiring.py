"""Builds the daemon from the settings: the only module here that names concrete adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from checker.asking import Asker
from checker.check_back import CheckBack
from checker.check_facts import CheckFacts
from checker.chore import Chore
from checker.daemon import Daemon, plain_chore, relay_chore, sweep_chore
from checker.fair_turns import FairTurns
from checker.group_rounds import GroupRounds
from checker.leaves import LeafKeeper
from checker.metrics_server import metrics_server
from checker.orphans import OrphanNames
from checker.parked_copies import ParkedCopies
from checker.relay_wiring import relay_threads
from checker.retire import Retirer, retire_chore
from checker.sweep import Sweeper
from outbox.callback_guard import CallbackPolicy, policy_of
from outbox.check_call.endpoint import HttpCheckEndpoint
from outbox.clock import SystemClock
from outbox.errors import ConfigurationError
from outbox.own_listeners import own_listeners
from outbox.publication.parked_topic import KafkaParkedTopic
from outbox.publication.record_names import KafkaRecordNames
from outbox.settings import Settings
from outbox.storage.check_queue import PostgresCheckQueue
from outbox.storage.connections import Pool, make_pool
from outbox.storage.heartbeats import PostgresHeartbeats
from outbox.storage.leaves import PostgresLeaves
from outbox.storage.orphans import PostgresOrphans
from outbox.storage.parked_messages import PostgresParkedMessages
from outbox.storage.plain_outbox import PostgresPlainOutbox
from outbox.storage.retire import PostgresRetirement
from outbox.storage.secrets import key_ring
from outbox.storage.sweep import PostgresSweep
from outbox.storage.turns import PostgresTurns
from outbox.telemetry import Metrics

CHORES: Final = ("relay", "check", "sweep", "retire")


@asynccontextmanager
async def open_daemon(settings: Settings) -> AsyncIterator[Daemon]:
    """Open everything that the chosen chores need, for the block.

    PostgreSQL and Kafka may still be away. Raises ConfigurationError.
    """
    chosen = chosen_chores(settings)
    metrics, clock = Metrics(), SystemClock()
    async with AsyncExitStack() as stack:
        url = settings.required_database_url()
        pool = make_pool(url, "checker", pool_max=settings.database_pool_max)
        await stack.enter_async_context(pool)
        await stack.enter_async_context(metrics_server(settings.checker_metrics_bind, metrics))
        turns = PostgresTurns(url)
        stack.push_async_callback(turns.close)
        chores = [Chore(name="leaves", step=LeafKeeper(PostgresLeaves(pool), metrics).step)]
        if "sweep" in chosen:
            chores.append(sweep_chore(Sweeper(PostgresSweep(pool)), turns))
        if "retire" in chosen:
            chores.append(retire_chore(_retirer(settings, pool, metrics), turns))
        rounds = None
        if "check" in chosen:
            rounds = await _group_rounds(stack, settings, pool, turns, metrics)
            chores.append(Chore(name="check", step=rounds.step))
            chores.extend(_parked_copies(settings, pool, turns, metrics))
        relay = None
        if "relay" in chosen:
            chores.append(plain_chore(PostgresPlainOutbox(pool)))
            relay = await asyncio.to_thread(relay_threads, settings, metrics)
            chores.append(relay_chore(relay))
            chores.append(_orphan_names(settings, pool, turns))
        yield Daemon(
            chores,
            PostgresHeartbeats(pool),
            clock,
            metrics,
            beat_seconds=settings.checker_heartbeat_seconds,
            relay=relay,
            drain=rounds.drain if rounds else None,
        )


def _retirer(settings: Settings, pool: Pool, metrics: Metrics) -> Retirer:
    retirement = PostgresRetirement(
        pool,
        retention_seconds=settings.retention_seconds,
        hold_seconds=settings.reconcile_hold_seconds,
    )
    return Retirer(retirement, metrics)


def _parked_copies(
    settings: Settings, pool: Pool, turns: PostgresTurns, metrics: Metrics
) -> list[Chore]:
    """Return the chore that copies parked messages, if a topic is named for them."""
    if settings.parked_topic is None:
        return []
    topic = KafkaParkedTopic(settings.required_bootstrap_servers(), settings.kafka_config)
    copies = ParkedCopies(
        PostgresParkedMessages(pool), topic, settings.parked_topic, turns, metrics
    )
    return [Chore(name="parked", step=copies.step)]


def _orphan_names(settings: Settings, pool: Pool, turns: PostgresTurns) -> Chore:
    """Return the chore that names what only Kafka has."""
    records = KafkaRecordNames(settings.required_bootstrap_servers(), settings.kafka_config)
    return Chore(name="orphans", step=OrphanNames(PostgresOrphans(pool), records, turns).step)


def chosen_chores(settings: Settings) -> frozenset[str]:
    """Return the chores to run; raises ConfigurationError for a word that is none."""
    unknown = sorted(set(settings.checker_only) - set(CHORES))
    if unknown:
        known = ", ".join(CHORES)
        raise ConfigurationError(f"OUTBOX_CHECKER_ONLY: {unknown[0]!r} is not one of {known}")
    return frozenset(settings.checker_only or CHORES)


def callback_policy(settings: Settings) -> CallbackPolicy:
    """Return where checks may go. Resolves the names of our own listeners."""
    return policy_of(
        settings.check_allow_cidrs,
        settings.check_allow_hosts,
        settings.check_allow_ports,
        https_only=settings.check_https_only,
        own=own_listeners(settings),
    )


async def _group_rounds(
    stack: AsyncExitStack, settings: Settings, pool: Pool, turns: PostgresTurns, metrics: Metrics
) -> GroupRounds:
    keys, proxy = settings.encryption_keys, settings.check_proxy_url
    ring = key_ring(
        keys.get_secret_value() if keys else None, insecure=settings.auth_mode == "dev-insecure"
    )
    policy = await asyncio.to_thread(callback_policy, settings)
    clock, facts = SystemClock(), CheckFacts(metrics)
    endpoint = HttpCheckEndpoint(policy, proxy_url=proxy.get_secret_value() if proxy else None)
    await stack.enter_async_context(endpoint)
    queue = PostgresCheckQueue(pool, ring.open)
    asker = Asker(
        endpoint,
        FairTurns(settings.check_max_inflight),
        clock,
        facts,
        batch_max=settings.check_batch_max,
    )
    return GroupRounds(CheckBack(queue, asker, facts), queue, turns, clock, facts)
