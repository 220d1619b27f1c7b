"""Builds the service from the settings: the only module here that names concrete adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from api.admin.bulk_runner import BulkRunner
from api.admin.check_endpoint_probe import CheckEndpointProbe
from api.admin.services import Services
from api.app import create_app
from api.from_settings import group_defaults, http_limits, ingest_policy, pepper, rates
from api.guard import Guard
from api.http.auth import AnybodyOnLoopback, Authenticator, KeyAuthenticator
from api.ingest.batcher import FlushLimits, MicroBatcher
from api.ingest.flush_timer import timed
from api.ingest.ingest import Ingest
from api.ingest.name_cache import NameCache
from api.ingest.publication_wait import PublicationWait
from api.ingest.topic_cache import TopicCache
from api.metrics.metrics_listener import metrics_listener
from api.metrics.metrics_page import MetricsPage
from outbox.checks.ssrf_guard import SsrfPolicy, policy_of
from outbox.clock import SystemClock
from outbox.failpoints import arm
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.own_listeners import own_listeners
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.messages.message import End, EndOutcome, Message, PrepareOutcome
from outbox.messages.ports import TopicCatalogue
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.maintenance.readiness import PostgresReadiness, newest_revision
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.interned_names import PostgresNames
from outbox.postgres.messages.message_status import PostgresMessageStatuses
from outbox.postgres.operators.acceptances import PostgresAcceptances
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.operators.bulk_actions import PostgresBulkActions
from outbox.postgres.operators.message_browser import PostgresBrowser
from outbox.postgres.operators.operations import PostgresOperations
from outbox.postgres.operators.repairs import PostgresRepairs
from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns
from outbox.postgres.sessions.connections import Pool, make_pool
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from outbox.telemetry.events import Event, configure_logging, get_logger
from outbox.telemetry.metrics import Metrics

WAITING_ROWS: Final = 20_000
"""Prepares that may wait for a flush; at the measured rates about a second's worth."""
DRAIN_SECONDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the lifespan opens and closes."""

    pool: Pool
    topics: TopicCache
    bulk_actions: PostgresBulkActions
    bulk_runner: BulkRunner
    prepares: MicroBatcher[Message, PrepareOutcome]
    ends: MicroBatcher[End, EndOutcome]
    metrics_page: MetricsPage
    metrics_bind: str | None
    workers: int


def application() -> Guard:
    """Return the service of this environment, for the server's worker processes."""
    settings = load_settings()
    configure_logging(settings.log_level, settings.log_format)
    return build(settings)


def build(settings: Settings, catalogue: TopicCatalogue | None = None) -> Guard:
    """Put the service together; nothing is opened before its lifespan. Raises ConfigurationError.

    PostgreSQL and Kafka may be away: then requests answer 503 until they are back. ``catalogue``
    stands in for Kafka's list of topics.
    """
    arm(settings.failpoints)
    metrics, clock = Metrics(), SystemClock()
    pool = make_pool(settings.required_database_url(), "api", pool_max=settings.database_pool_max)
    kafka = catalogue or KafkaTopicCatalogue(
        settings.required_bootstrap_servers(), settings.kafka_config
    )
    topics = TopicCache(kafka, clock, create=settings.create_topics)
    directory = NameCache(PostgresNames(pool), clock)
    parts = _parts(settings, pool, topics, metrics, clock)
    groups = PostgresProducerGroups(pool, _ring(settings))
    callback_policy = _CallbackPolicy(settings)
    keys = PostgresApiKeys(pool, pepper(settings))
    authenticator, forget_keys = _authenticator(settings, keys, clock)
    metrics["build_info"].labels(_version(), "").set(1)
    services = Services(
        browser=PostgresBrowser(pool),
        operations=PostgresOperations(pool),
        bulk_actions=parts.bulk_actions,
        wake_bulk_runner=parts.bulk_runner.wake,
        groups=groups,
        endpoint_tests=_endpoint_tests(settings, groups, callback_policy, clock),
        keys=keys,
        runs=PostgresReconciliationRuns(pool),
        repairs=PostgresRepairs(pool),
        acceptances=PostgresAcceptances(pool),
        readiness=PostgresReadiness(pool, newest_revision()),
        directory=directory,
        topics=topics,
        metrics=metrics,
        render_metrics=parts.metrics_page.render,
        callback_policy=callback_policy.read,
        group_defaults=group_defaults(settings),
        forget_keys=forget_keys,
        heartbeat_seconds=settings.checker_heartbeat_seconds,
        version=_version(),
        metrics_here=settings.metrics_bind is None,
    )
    return create_app(
        ingest=_ingest(settings, parts, pool, directory, topics, metrics),
        services=services,
        authenticator=authenticator,
        limits=http_limits(settings),
        rates=rates(settings, clock),
        clock=clock,
        lifespan=_lifespan(parts),
        docs_enabled=settings.docs_enabled,
    )


def _ingest(
    settings: Settings,
    parts: Parts,
    pool: Pool,
    directory: NameCache,
    topics: TopicCache,
    metrics: Metrics,
) -> Ingest:
    return Ingest(
        prepares=parts.prepares,
        ends=parts.ends,
        directory=directory,
        topics=topics,
        publications=PublicationWait(PostgresMessageStatuses(pool)),
        policy=ingest_policy(settings),
        metrics=metrics,
    )


def _parts(
    settings: Settings, pool: Pool, topics: TopicCache, metrics: Metrics, clock: SystemClock
) -> Parts:
    store = PostgresHalfStore(pool)

    def pool_use() -> tuple[int, int]:
        stats = pool.get_stats()
        return stats.get("pool_size", 0) - stats.get("pool_available", 0), pool.max_size

    bulk_actions = PostgresBulkActions(pool)
    return Parts(
        pool=pool,
        topics=topics,
        bulk_actions=bulk_actions,
        bulk_runner=BulkRunner(bulk_actions),
        prepares=MicroBatcher(
            timed(store.prepare, "prepare", metrics, clock), FlushLimits(waiting_rows=WAITING_ROWS)
        ),
        ends=MicroBatcher(timed(store.end, "end", metrics, clock), FlushLimits()),
        metrics_page=MetricsPage(
            metrics,
            PostgresReadiness(pool, "").unfinished,
            pool_use,
            PostgresReconciliationRuns(pool),
            clock,
        ),
        metrics_bind=settings.metrics_bind,
        workers=settings.http_workers,
    )


def _lifespan(parts: Parts) -> Any:
    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        """Open what requests need; at the end flush everything that was accepted."""
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            await parts.pool.open(wait=False)
            stack.push_async_callback(parts.pool.close)
            await stack.enter_async_context(
                metrics_listener(
                    parts.metrics_bind,
                    parts.metrics_page.render,
                    shared=parts.workers > 1,
                )
            )
            keeper = asyncio.create_task(parts.topics.keep_fresh(stop))
            runner = asyncio.create_task(parts.bulk_runner.run(stop))
            teller = asyncio.create_task(parts.metrics_page.keep_told(stop))
            get_logger().info(Event.STARTED, program="api")
            try:
                yield
            finally:
                stop.set()
                parts.bulk_runner.wake()
                await keeper
                await runner
                await teller
                await _drain(parts)
                get_logger().info(Event.STOPPED, program="api")

    return lifespan


async def _drain(parts: Parts) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            await parts.prepares.drain()
            await parts.ends.drain()
    except TimeoutError:
        get_logger().warning(Event.DEPENDENCY_LOST, dependency="postgres")


class _CallbackPolicy:
    """Where checks may go; our own listeners' names are resolved once, when first asked."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._policy: SsrfPolicy | None = None

    def read(self) -> SsrfPolicy:
        """Return the policy."""
        if self._policy is None:
            settings = self._settings
            self._policy = policy_of(
                settings.check_allow_cidrs,
                settings.check_allow_hosts,
                settings.check_allow_ports,
                https_only=settings.check_https_only,
                own=own_listeners(settings),
            )
        return self._policy


def _endpoint_tests(
    settings: Settings,
    groups: PostgresProducerGroups,
    policy: _CallbackPolicy,
    clock: SystemClock,
) -> CheckEndpointProbe:
    proxy = settings.check_proxy_url
    proxy_url = proxy.get_secret_value() if proxy else None

    def endpoint() -> HttpCheckEndpoint:
        return HttpCheckEndpoint(policy.read(), proxy_url=proxy_url)

    return CheckEndpointProbe(groups, endpoint, clock)


def _authenticator(
    settings: Settings, keys: PostgresApiKeys, clock: SystemClock
) -> tuple[Authenticator, Any]:
    if settings.auth_mode == "dev-insecure":
        return AnybodyOnLoopback(), lambda: None
    authenticator = KeyAuthenticator(keys, clock)
    return authenticator, authenticator.forget


def _ring(settings: Settings) -> Any:
    keys = settings.encryption_keys
    insecure = settings.auth_mode == "dev-insecure"
    return key_ring(keys.get_secret_value() if keys else None, insecure=insecure)


def _version() -> str:
    try:
        return version("outbox")
    except PackageNotFoundError:
        return "0"
