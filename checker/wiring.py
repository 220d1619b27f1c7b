"""Builds the daemon from the settings: the only module here that names concrete adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

from checker.checks.check_back import CheckBack
from checker.checks.check_caller import CheckCaller
from checker.checks.check_observer import CheckObserver
from checker.checks.fair_semaphore import FairSemaphore
from checker.checks.group_scheduler import GroupScheduler
from checker.checks.sweeper import Sweeper
from checker.daemon import Daemon, relay_liveness_task, sql_outbox_task
from checker.maintenance.orphan_names import OrphanNames
from checker.maintenance.partition_maintenance import PartitionMaintenance
from checker.maintenance.retention import Retirer
from checker.maintenance.topic_watch import TopicWatch
from checker.periodic_task import PeriodicTask
from checker.relay_wiring import relay_threads
from outbox.clock import SystemClock
from outbox.errors import ConfigurationError
from outbox.http_checks.endpoint import endpoint_of
from outbox.kafka.topic_scan import KafkaTopicScan
from outbox.kafka.topic_view import KafkaTopicView
from outbox.operators.activity import ProcessActivity
from outbox.postgres.checks.check_queue import PostgresCheckQueue
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.maintenance.heartbeats import PostgresHeartbeats
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.messages.seen_topics import PostgresSeenTopics
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.operators.activity import PostgresActivity
from outbox.postgres.relay.orphans import PostgresOrphans
from outbox.postgres.sessions.advisory_locks import PostgresAdvisoryLocks
from outbox.postgres.sessions.connections import Pool, make_pool
from outbox.postgres.sessions.verified_sessions import refuse_pool_behind, refuse_to_start_behind
from outbox.settings.catalogue import Settings
from outbox.settings.formats import words
from outbox.telemetry.metrics import Metrics
from outbox.telemetry.metrics_server import metrics_server

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans

TASKS: Final = ("relay", "check", "sweep", "retire")
CHECKS_AT_ONCE: Final = 256
CHECK_BATCH_MAX: Final = 100
"""Ids in one batch check."""


@asynccontextmanager
async def open_daemon(
    settings: Settings, chosen: frozenset[str], spans: Spans | None = None
) -> AsyncIterator[Daemon]:
    """Open everything that the chosen tasks need, for the block.

    PostgreSQL and Kafka may still be unavailable. ``spans`` records spans; the end of the block
    closes them. Raises ConfigurationError.
    """
    metrics, clock = Metrics(), SystemClock()
    metrics.show_version()
    async with AsyncExitStack() as stack:
        if spans is not None:
            stack.push_async_callback(asyncio.to_thread, spans.close)
        url = settings.required_database_url()
        await asyncio.to_thread(refuse_to_start_behind, url, "checker")
        pool = make_pool(
            url, "checker", pool_max=settings.database_pool_max, admit=refuse_pool_behind
        )
        await stack.enter_async_context(pool)
        metrics["db_pool_in_use"].set_function(lambda: pool.use()[0])
        metrics["db_pool_max"].set(settings.database_pool_max)
        bind = settings.checker_metrics_bind
        stack.enter_context(metrics_server("OUTBOX_CHECKER_METRICS_BIND", bind, metrics.registry))
        locks = PostgresAdvisoryLocks(url)
        stack.push_async_callback(locks.close)
        tasks = _upkeep(chosen, settings, pool, locks, metrics)
        activity = ProcessActivity(metrics, PostgresActivity(pool).add)
        tasks.append(PeriodicTask(name="activity", step=activity.step))
        scheduler = None
        if "check" in chosen:
            scheduler = _group_scheduler(settings, pool, locks, metrics)
            tasks.append(PeriodicTask(name="check", step=scheduler.step))
        relay = None
        if "relay" in chosen:
            relay = await asyncio.to_thread(relay_threads, settings, metrics, spans)
            tasks += [
                sql_outbox_task(PostgresSqlOutbox(pool).admit),
                relay_liveness_task(relay),
                _orphan_names(settings, pool, locks),
                _topic_watch(settings, pool, locks, metrics),
            ]
        yield Daemon(
            tasks,
            PostgresHeartbeats(pool),
            clock,
            metrics,
            relay=relay,
            drain=scheduler.drain if scheduler else None,
        )


def _upkeep(
    chosen: frozenset[str],
    settings: Settings,
    pool: Pool,
    locks: PostgresAdvisoryLocks,
    metrics: Metrics,
) -> list[PeriodicTask]:
    """Return the tasks of the leaves, which every checker runs, of the sweep and of retirement."""
    leaves = PartitionMaintenance(PostgresPartitions(pool), metrics, SystemClock())
    tasks = [PeriodicTask(name="leaves", step=leaves.step)]
    if "sweep" in chosen:
        sweeper = Sweeper(PostgresSweep(pool), locks)
        tasks.append(PeriodicTask(name="sweep", step=sweeper.step))
    if "retire" in chosen:
        retirement = PostgresRetirement(pool, retention_seconds=settings.retention_seconds)
        retirer = Retirer(retirement, locks, metrics)
        tasks.append(PeriodicTask(name="retire", step=retirer.step))
    return tasks


def _orphan_names(settings: Settings, pool: Pool, locks: PostgresAdvisoryLocks) -> PeriodicTask:
    """Return the task that names messages that only Kafka has."""
    records = KafkaTopicScan(settings.required_bootstrap_servers(), settings.kafka_config)
    names = OrphanNames(PostgresOrphans(pool), PostgresSeenTopics(pool), records, locks)
    return PeriodicTask(name="orphans", step=names.step)


def _topic_watch(
    settings: Settings, pool: Pool, locks: PostgresAdvisoryLocks, metrics: Metrics
) -> PeriodicTask:
    """Return the task that looks at the topics with the relay's principal."""
    view = KafkaTopicView(settings.required_bootstrap_servers(), settings.kafka_config)
    watch = TopicWatch(PostgresSeenTopics(pool), view, locks, metrics)
    return PeriodicTask(name="topics", step=watch.step)


def chosen_tasks(only: str | None) -> frozenset[str]:
    """Return the tasks of the flag ``--only``; raises ConfigurationError for an unknown one."""
    chosen = words(only or "") or TASKS
    unknown = sorted(set(chosen) - set(TASKS))
    if unknown:
        raise ConfigurationError(f"--only: {unknown[0]!r} is not one of {', '.join(TASKS)}")
    return frozenset(chosen)


def _group_scheduler(
    settings: Settings,
    pool: Pool,
    locks: PostgresAdvisoryLocks,
    metrics: Metrics,
) -> GroupScheduler:
    keys = settings.encryption_keys
    ring = key_ring(
        keys.get_secret_value() if keys else None, insecure=settings.auth_mode == "dev-insecure"
    )
    clock, observer = SystemClock(), CheckObserver(metrics)
    queue = PostgresCheckQueue(pool, ring.open)
    caller = CheckCaller(
        endpoint_of(settings),
        FairSemaphore(CHECKS_AT_ONCE),
        clock,
        observer,
        batch_max=CHECK_BATCH_MAX,
    )
    return GroupScheduler(CheckBack(queue, caller, observer), queue, locks, clock, observer)
