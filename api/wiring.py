"""Builds the service from the settings: the only module of the API that names adapters."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from api.admin.bulk_runner import BulkRunner
from api.admin.check_endpoint_probe import CheckEndpointProbe
from api.admin.router import ROUTERS
from api.admin.services import Services
from api.app import Lifespan, create_app
from api.background_task import repeated, until_stopped
from api.console.console import Console
from api.console.in_process_api import App
from api.console.session import SessionSeal
from api.from_settings import (
    BODY_MAX_BYTES,
    group_defaults,
    http_limits,
    key_ring_of,
    pepper,
    prepare_policy,
    rates,
    refuse_insecure_bind,
)
from api.guard import Guard
from api.http.admission import Admission
from api.http.authentication.authenticator import Authenticator
from api.http.authentication.key_authenticator import KeyAuthenticator
from api.http.authentication.loopback_authenticator import LoopbackAuthenticator
from api.http.in_flight import InFlight
from api.http.request_metrics import RequestMetrics
from api.ingest.batcher import FlushLimits, MicroBatcher
from api.ingest.ends import Ends
from api.ingest.flush_timer import timed
from api.ingest.hot_routes import HotRoutes
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import traceparent_of
from api.ingest.prepares import Prepares
from api.ingest.publication_wait import PublicationWait
from api.ingest.topic_cache import TopicCache
from api.installation_wiring import installation
from api.metrics.metrics_page import MetricsPage
from api.openapi import methods_of, openapi_document
from outbox.clock import SystemClock
from outbox.failpoints import arm
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guarded_connector import GuardedResolver, guarded_resolver
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.messages.message import End, EndOutcome, Message, PrepareOutcome
from outbox.messages.ports import TopicCatalogue
from outbox.operators.activity import ActivityWriter, ProcessActivity
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.maintenance.gauges import PostgresGauges
from outbox.postgres.maintenance.readiness import (
    HEARTBEAT_SECONDS,
    PostgresReadiness,
    newest_revision,
)
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.interned_names import PostgresInternedNames
from outbox.postgres.messages.message_status import PostgresMessageStatuses
from outbox.postgres.messages.seen_topics import PostgresSeenTopics
from outbox.postgres.operators.acceptances import PostgresAcceptances
from outbox.postgres.operators.activity import PostgresActivity
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.operators.audit_log import PostgresAuditLog
from outbox.postgres.operators.bulk_actions import PostgresBulkActions
from outbox.postgres.operators.held_admin import PostgresHeldAdmin
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.operators.operations import PostgresOperations
from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns
from outbox.postgres.sessions.connections import PLAN_ONCE, Pool, PoolShare
from outbox.postgres.sessions.verified_sessions import make_verified_pool, refuse_to_start_behind
from outbox.settings.catalogue import Settings
from outbox.settings.environment import failpoints
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.events import (
    Event,
    configure_logging,
    get_logger,
    log_style,
    log_uncaught_errors,
)
from outbox.telemetry.metrics import Metrics
from outbox.telemetry.metrics_server import metrics_server
from outbox.telemetry.tracing import open_tracing
from outbox.telemetry.version import installed_version

if TYPE_CHECKING:
    from outbox.telemetry.spans import Spans

WAITING_ROWS: Final = 40_000
"""Prepares that may wait for a flush, one tenant's half of them about one second at the measured
rates."""
REQUESTS_AT_ONCE: Final = 1000
"""Above it prepares and reads get 503; ends are still accepted."""
ANSWER_SECONDS: Final = 10.0
"""How long a request waits for an answer of PostgreSQL; as long as our clients wait for one."""
GRACE_SECONDS: Final = 5
"""The time that background tasks have to end their step; it may wait for PostgreSQL or Kafka."""
DRAIN_SECONDS: Final = 10
CONSOLE_PATH: Final = "/ui"
MESSAGE_CONNECTIONS: Final = 4
"""Connections that reads and operators leave to prepares, ends, their keys, names and waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that the lifespan opens and closes."""

    pool: Pool
    topic_cache: TopicCache
    bulk_actions: PostgresBulkActions
    bulk_runner: BulkRunner
    activity: ActivityWriter
    prepares: MicroBatcher[Message, PrepareOutcome]
    ends: MicroBatcher[End, EndOutcome]
    metrics_page: MetricsPage
    metrics_bind: str | None
    workers: int
    spans: Spans | None


def refuse_to_start(settings: Settings) -> None:
    """Raise ConfigurationError if a secret is missing, or if PostgreSQL was restored.

    A PostgreSQL that does not answer is logged.
    """
    pepper(settings)
    key_ring_of(settings)
    silent = refuse_to_start_behind(settings.required_database_url(), "api")
    if silent:  # the pool will know only that nothing comes
        get_logger().warning(Event.DEPENDENCY_LOST, dependency="postgres", error=silent)


def application(settings: Settings, listens_on: str, *, traces: bool) -> App:
    """Return the service in one of the server's processes; ``traces``: its spans are sent."""
    configure_logging(settings.log_level, log_style(), secret_texts(settings))
    log_uncaught_errors()
    spans = open_tracing("outbox-api", on=traces)
    service = build(settings, listens_on=listens_on, spans=spans)
    _tune_garbage_collector()
    if spans is None:
        return service
    from api.traced import traced

    return traced(service, spans)


def _tune_garbage_collector() -> None:
    """Make Python look for cycles less often: what a request makes has none."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def build(
    settings: Settings,
    catalogue: TopicCatalogue | None = None,
    *,
    listens_on: str | None = None,
    spans: Spans | None = None,
) -> Guard:
    """Build the service; nothing is opened before its lifespan. Raises ConfigurationError.

    PostgreSQL and Kafka may be down: then requests answer 503 until they are back. ``catalogue``
    replaces Kafka's list of topics. ``listens_on`` is the host of the listener: without a loopback
    address there, AUTH_MODE=dev-insecure is refused. ``spans`` records spans; its lifespan's end
    closes them.
    """
    refuse_insecure_bind(settings, listens_on)
    arm(failpoints())
    metrics, clock = Metrics(), SystemClock()
    url, most = settings.required_database_url(), settings.database_pool_max
    pool = make_verified_pool(
        url, "api", pool_max=most, plans=PLAN_ONCE, answer_seconds=ANSWER_SECONDS
    )
    topic_cache = _topic_cache(settings, catalogue, pool, clock)
    name_cache = NameCache(PostgresInternedNames(pool), clock)
    rest = PoolShare(pool, max(1, most - MESSAGE_CONNECTIONS))
    parts = _parts(settings, pool, rest, topic_cache, metrics, clock, spans)
    groups = PostgresProducerGroups(rest, key_ring_of(settings))
    resolver = guarded_resolver(settings)
    keys = PostgresApiKeys(pool, pepper(settings))
    authenticator, forget_key = _authenticator(settings, keys, clock)
    metrics.show_version()
    services = Services(
        browser=PostgresMessageBrowser(rest),
        operations=PostgresOperations(rest),
        bulk_actions=parts.bulk_actions,
        wake_bulk_runner=parts.bulk_runner.wake,
        held=PostgresHeldAdmin(rest),
        audit_log=PostgresAuditLog(rest),
        activity=PostgresActivity(rest),
        installation=installation(settings, topic_cache, clock),
        groups=groups,
        check_endpoint_probe=_check_endpoint_probe(settings, groups, resolver, clock),
        keys=keys,
        runs=PostgresReconciliationRuns(rest),
        acceptances=PostgresAcceptances(rest),
        readiness=PostgresReadiness(pool, newest_revision()),
        name_cache=name_cache,
        topic_cache=topic_cache,
        metrics=metrics,
        render_metrics=parts.metrics_page.render,
        ssrf_policy=resolver.policy,
        group_defaults=group_defaults(settings),
        retention_seconds=settings.retention_seconds,
        forget_key=forget_key,
        heartbeat_seconds=HEARTBEAT_SECONDS,
        version=installed_version(),
        metrics_here=settings.metrics_bind is None,
    )
    hot_routes = _hot_routes(settings, parts, name_cache, metrics)
    return _guard(settings, services, hot_routes, authenticator, _lifespan(parts))


def _topic_cache(
    settings: Settings, catalogue: TopicCatalogue | None, pool: Pool, clock: SystemClock
) -> TopicCache:
    servers, config = settings.required_bootstrap_servers(), settings.kafka_config
    kafka = catalogue or KafkaTopicCatalogue(servers, config)
    seen = PostgresSeenTopics(pool)
    return TopicCache(kafka, clock, create=settings.create_topics, seen=seen)


def _guard(
    settings: Settings,
    services: Services,
    hot_routes: HotRoutes,
    authenticator: Authenticator,
    lifespan: Lifespan,
) -> Guard:
    clock = SystemClock()
    app = create_app(
        ROUTERS,
        methods_of(ROUTERS),
        partial(contract_of, services.version),
        lifespan=lifespan,
    )
    app.state.services = services
    return Guard(
        app,
        hot_routes.find,
        Admission(
            authenticator,
            http_limits(),
            InFlight(REQUESTS_AT_ONCE),
            rates(settings, clock).reads,
        ),
        RequestMetrics(services.metrics, clock),
        console=_console(settings, app, authenticator, services.version),
        lifespan=partial(lifespan, app),
    )


def _console(settings: Settings, app: App, authenticator: Authenticator, version: str) -> Console:
    """Return the console."""
    return Console(
        app,
        authenticator,
        SessionSeal(pepper(settings), SystemClock()),
        prefix=CONSOLE_PATH,
        trace_url=settings.ui_trace_url,
        needs_key=settings.auth_mode == "keys",
        version=version,
    )


@cache
def contract_of(version: str) -> dict[str, Any]:
    """Return the contract, built once per process, when somebody asks for it: it takes long.

    The dictionary is shared: do not change it.
    """
    return openapi_document(ROUTERS, version)


def _hot_routes(
    settings: Settings, parts: Parts, name_cache: NameCache, metrics: Metrics
) -> HotRoutes:
    counted = IngestMetrics(metrics, name_cache)
    publications = PublicationWait(PostgresMessageStatuses(parts.pool))
    return HotRoutes(
        Prepares(parts.prepares, name_cache, parts.topic_cache, prepare_policy(settings), counted),
        Ends(parts.ends, name_cache, publications, counted),
        rates(settings, SystemClock()).prepares,
        BODY_MAX_BYTES,
        _own_or_given if parts.spans else traceparent_of,
    )


def _own_or_given(header: str | None) -> str | None:
    """Return the context of the span of this request, or if it is not recorded the caller's."""
    from outbox.telemetry.spans import recorded_traceparent

    return recorded_traceparent() or traceparent_of(header)


def _parts(
    settings: Settings,
    pool: Pool,
    rest: PoolShare,
    topic_cache: TopicCache,
    metrics: Metrics,
    clock: SystemClock,
    spans: Spans | None,
) -> Parts:
    store = PostgresHalfStore(pool)
    bulk_actions = PostgresBulkActions(rest)
    return Parts(
        pool=pool,
        topic_cache=topic_cache,
        bulk_actions=bulk_actions,
        bulk_runner=BulkRunner(bulk_actions),
        activity=ActivityWriter(ProcessActivity(metrics), PostgresActivity(rest)),
        prepares=MicroBatcher(
            timed(store.prepare, "prepare", metrics, clock), FlushLimits(waiting_rows=WAITING_ROWS)
        ),
        ends=MicroBatcher(timed(store.end, "end", metrics, clock), FlushLimits()),
        metrics_page=MetricsPage(
            metrics,
            PostgresGauges(pool),
            pool.use,
            PostgresReconciliationRuns(pool),
            clock,
        ),
        metrics_bind=settings.metrics_bind,
        workers=settings.http_workers,
        spans=spans,
    )


def _lifespan(parts: Parts) -> Lifespan:
    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        """Open the parts that requests need; at the end flush everything that was accepted."""
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            await parts.pool.open(wait=False)
            stack.push_async_callback(parts.pool.close)
            if parts.spans is not None:
                stack.push_async_callback(asyncio.to_thread, parts.spans.close)
            if parts.metrics_bind:
                stack.enter_context(
                    metrics_server(
                        "OUTBOX_METRICS_BIND",
                        parts.metrics_bind,
                        parts.metrics_page.collector(),
                        shared=parts.workers > 1,
                    )
                )
            background = {
                "topics": parts.topic_cache.keep_fresh,
                "bulk_actions": parts.bulk_runner.run,
                "activity": repeated(parts.activity.step),
                "pool_gauges": parts.metrics_page.keep_pool_fresh,
            }
            tasks = [asyncio.create_task(until_stopped(*each, stop)) for each in background.items()]
            get_logger().info(Event.STARTED, program="api")
            try:
                yield
            finally:
                stop.set()
                parts.bulk_runner.wake()
                _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
                for task in late:
                    task.cancel()
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


def _check_endpoint_probe(
    settings: Settings,
    groups: PostgresProducerGroups,
    resolver: GuardedResolver,
    clock: SystemClock,
) -> CheckEndpointProbe:
    proxy = settings.check_proxy_url
    proxy_url = proxy.get_secret_value() if proxy else None

    def endpoint() -> HttpCheckEndpoint:
        return HttpCheckEndpoint(resolver, proxy_url=proxy_url)

    return CheckEndpointProbe(groups, endpoint, clock)


def _authenticator(
    settings: Settings, keys: PostgresApiKeys, clock: SystemClock
) -> tuple[Authenticator, Any]:
    if settings.auth_mode == "dev-insecure":
        return LoopbackAuthenticator(), lambda _: None
    authenticator = KeyAuthenticator(keys, clock)
    return authenticator, authenticator.forget
