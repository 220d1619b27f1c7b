"""Builds the daemon from the settings: the only module here that names concrete adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from checker.checks.check_back import CheckBack
from checker.checks.check_caller import CheckCaller
from checker.checks.check_observer import CheckObserver
from checker.checks.fair_semaphore import FairSemaphore
from checker.checks.group_scheduler import GroupScheduler
from checker.checks.sweeper import Sweeper
from checker.daemon import Daemon, plain_chore, relay_chore, sweep_chore
from checker.maintenance.metrics_server import metrics_server
from checker.maintenance.orphan_names import OrphanNames
from checker.maintenance.parked_copies import ParkedCopies
from checker.maintenance.partition_maintenance import PartitionMaintenance
from checker.maintenance.retention import Retirer, retire_chore
from checker.periodic_task import PeriodicTask
from checker.relay_wiring import relay_threads
from outbox.checks.ssrf_guard import SsrfPolicy, policy_of
from outbox.clock import SystemClock
from outbox.errors import ConfigurationError
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.own_listeners import own_listeners
from outbox.kafka.parked_topic import KafkaParkedTopic
from outbox.kafka.record_names import KafkaRecordNames
from outbox.postgres.checks.check_queue import PostgresCheckQueue
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.maintenance.heartbeats import PostgresHeartbeats
from outbox.postgres.maintenance.parked_messages import PostgresParkedMessages
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.relay.orphans import PostgresOrphans
from outbox.postgres.sessions.advisory_locks import PostgresAdvisoryLocks
from outbox.postgres.sessions.connections import Pool, make_pool
from outbox.settings.catalogue import Settings
from outbox.telemetry.metrics import Metrics

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
        turns = PostgresAdvisoryLocks(url)
        stack.push_async_callback(turns.close)
        chores = [
            PeriodicTask(
                name="leaves", step=PartitionMaintenance(PostgresPartitions(pool), metrics).step
            )
        ]
        if "sweep" in chosen:
            chores.append(sweep_chore(Sweeper(PostgresSweep(pool)), turns))
        if "retire" in chosen:
            chores.append(retire_chore(_retirer(settings, pool, metrics), turns))
        rounds = None
        if "check" in chosen:
            rounds = await _group_rounds(stack, settings, pool, turns, metrics)
            chores.append(PeriodicTask(name="check", step=rounds.step))
            chores.extend(_parked_copies(settings, pool, turns, metrics))
        relay = None
        if "relay" in chosen:
            chores.append(plain_chore(PostgresSqlOutbox(pool)))
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
    settings: Settings, pool: Pool, turns: PostgresAdvisoryLocks, metrics: Metrics
) -> list[PeriodicTask]:
    """Return the chore that copies parked messages, if a topic is named for them."""
    if settings.parked_topic is None:
        return []
    topic = KafkaParkedTopic(settings.required_bootstrap_servers(), settings.kafka_config)
    copies = ParkedCopies(
        PostgresParkedMessages(pool), topic, settings.parked_topic, turns, metrics
    )
    return [PeriodicTask(name="parked", step=copies.step)]


def _orphan_names(settings: Settings, pool: Pool, turns: PostgresAdvisoryLocks) -> PeriodicTask:
    """Return the chore that names what only Kafka has."""
    records = KafkaRecordNames(settings.required_bootstrap_servers(), settings.kafka_config)
    return PeriodicTask(
        name="orphans", step=OrphanNames(PostgresOrphans(pool), records, turns).step
    )


def chosen_chores(settings: Settings) -> frozenset[str]:
    """Return the chores to run; raises ConfigurationError for a word that is none."""
    unknown = sorted(set(settings.checker_only) - set(CHORES))
    if unknown:
        known = ", ".join(CHORES)
        raise ConfigurationError(f"OUTBOX_CHECKER_ONLY: {unknown[0]!r} is not one of {known}")
    return frozenset(settings.checker_only or CHORES)


def callback_policy(settings: Settings) -> SsrfPolicy:
    """Return where checks may go. Resolves the names of our own listeners."""
    return policy_of(
        settings.check_allow_cidrs,
        settings.check_allow_hosts,
        settings.check_allow_ports,
        https_only=settings.check_https_only,
        own=own_listeners(settings),
    )


async def _group_rounds(
    stack: AsyncExitStack,
    settings: Settings,
    pool: Pool,
    turns: PostgresAdvisoryLocks,
    metrics: Metrics,
) -> GroupScheduler:
    keys, proxy = settings.encryption_keys, settings.check_proxy_url
    ring = key_ring(
        keys.get_secret_value() if keys else None, insecure=settings.auth_mode == "dev-insecure"
    )
    policy = await asyncio.to_thread(callback_policy, settings)
    clock, facts = SystemClock(), CheckObserver(metrics)
    endpoint = HttpCheckEndpoint(policy, proxy_url=proxy.get_secret_value() if proxy else None)
    await stack.enter_async_context(endpoint)
    queue = PostgresCheckQueue(pool, ring.open)
    asker = CheckCaller(
        endpoint,
        FairSemaphore(settings.check_max_inflight),
        clock,
        facts,
        batch_max=settings.check_batch_max,
    )
    return GroupScheduler(CheckBack(queue, asker, facts), queue, turns, clock, facts)
