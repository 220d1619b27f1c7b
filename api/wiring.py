"""Builds the service from the settings: the only module of the API that names adapters."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from api.admin.bulk_runner import bulk_runner
from api.admin.check_endpoint_probe import CheckEndpointProbe
from api.admin.router import ROUTERS
from api.admin.services import Services
from api.app import Lifespan, create_app
from api.console.console import Console
from api.console.session import SessionSeal
from api.from_settings import key_ring_of, pepper, refuse_insecure_bind
from api.guard import Guard
from api.http.admission import Admission, Authenticator
from api.http.authentication.key_authenticator import KeyAuthenticator
from api.http.authentication.loopback_authenticator import LoopbackAuthenticator
from api.http.exchange import App
from api.http.rate_limits import RateLimit
from api.http.request_metrics import RequestMetrics
from api.http.shared_read import SharedRead
from api.ingest.hot_routes import HotRoutes
from api.ingest_wiring import IngestWiring
from api.lifecycle import running
from api.metrics.metrics_page import MetricsPage
from api.stores_view import StoresView
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.failpoints import arm
from outbox.http_checks.endpoint import endpoint_of
from outbox.operators.activity import ProcessActivity
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.maintenance.gauges import PostgresGauges
from outbox.postgres.maintenance.readiness import (
    PostgresReadiness,
    newest_revision,
)
from outbox.postgres.messages.audit_log import PostgresAuditLog
from outbox.postgres.operators.activity import PostgresActivity
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.operators.bulk_actions import PostgresBulkActions
from outbox.postgres.operators.held_admin import PostgresHeldAdmin
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.operators.operations import PostgresOperations
from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns
from outbox.postgres.sessions.connections import PLAN_ONCE, Pool, PoolShare, make_pool
from outbox.postgres.sessions.verified_sessions import refuse_pool_behind, refuse_to_start_behind
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
    from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
    from outbox.telemetry.spans import Spans

ANSWER_SECONDS: Final = 10.0
"""How long a request waits for an answer of PostgreSQL; as long as our clients wait for one."""
DRAIN_SECONDS: Final = 10
MESSAGE_CONNECTIONS: Final = 4
"""Connections that reads and operators leave to prepares, ends, their keys, names and waits."""


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
    from api.http.traced import traced

    return traced(service, spans)


def _tune_garbage_collector() -> None:
    """Make Python look for cycles less often: what a request makes has none."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def build(
    settings: Settings,
    catalogue: KafkaTopicCatalogue | None = None,
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
    metrics.show_version()
    pool, most = _pool(settings), settings.database_pool_max
    ingest = IngestWiring(settings, pool, metrics, catalogue)
    share = PoolShare(pool, max(1, most - MESSAGE_CONNECTIONS))
    bulk_actions = PostgresBulkActions(share)
    page = MetricsPage(
        metrics, PostgresGauges(pool), pool.use, PostgresReconciliationRuns(pool), clock
    )
    activity = ProcessActivity(metrics, PostgresActivity(share).add)
    steps = {
        "topics": ingest.topic_cache.keep_fresh,
        "bulk_actions": bulk_runner(bulk_actions),
        "activity": activity.step,
        "pool_gauges": page.keep_pool_fresh,
    }

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        """Open the parts that requests need; at the end close them."""
        async with AsyncExitStack() as stack:
            await pool.open(wait=False)
            stack.push_async_callback(pool.close)
            if spans is not None:
                stack.push_async_callback(asyncio.to_thread, spans.close)
            if bind := settings.metrics_bind:
                shared, read = settings.http_workers > 1, page.collector()
                stack.enter_context(
                    metrics_server("OUTBOX_METRICS_BIND", bind, read, shared=shared)
                )
            await stack.enter_async_context(running(steps, partial(_drain, ingest, activity)))
            get_logger().info(Event.STARTED, program="api")
            yield

    keys = PostgresApiKeys(pool, pepper(settings))
    insecure = settings.auth_mode == "dev-insecure"
    authenticator = LoopbackAuthenticator() if insecure else KeyAuthenticator(keys, clock)
    services = _services(settings, share, ingest, page, bulk_actions, keys, authenticator)
    hot_routes = ingest.hot_routes(traced=spans is not None)
    return _guard(settings, services, hot_routes, authenticator, lifespan)


async def _drain(ingest: IngestWiring, activity: ProcessActivity) -> None:
    """Flush what was accepted, and write the last counts, if PostgreSQL answers in time."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            await ingest.drain()
            await activity.step()
    except (TimeoutError, DatabaseUnavailable):
        get_logger().warning(Event.DEPENDENCY_LOST, dependency="postgres")


def _pool(settings: Settings) -> Pool:
    """Return the pool of all requests; its sessions plan a statement once."""
    return make_pool(
        settings.required_database_url(),
        "api",
        pool_max=settings.database_pool_max,
        admit=refuse_pool_behind,
        plans=PLAN_ONCE,
        answer_seconds=ANSWER_SECONDS,
    )


def _services(
    settings: Settings,
    share: PoolShare,
    ingest: IngestWiring,
    page: MetricsPage,
    bulk_actions: PostgresBulkActions,
    keys: PostgresApiKeys,
    authenticator: Authenticator,
) -> Services:
    """Return what the cold routes use."""
    clock = SystemClock()
    groups = PostgresProducerGroups(share, key_ring_of(settings))
    endpoint = endpoint_of(settings)
    return Services(
        browser=PostgresMessageBrowser(share),
        operations=PostgresOperations(share),
        bulk_actions=bulk_actions,
        held=PostgresHeldAdmin(share),
        audit_log=PostgresAuditLog(share),
        activity=PostgresActivity(share),
        stores=StoresView(settings, lambda: ingest.topic_cache.reachable, ingest.refusal, clock),
        groups=groups,
        check_endpoint_probe=CheckEndpointProbe(groups, endpoint, clock),
        keys=keys,
        runs=PostgresReconciliationRuns(share),
        readiness=SharedRead(PostgresReadiness(ingest.pool, newest_revision()).checks, clock),
        name_cache=ingest.name_cache,
        topic_cache=ingest.topic_cache,
        metrics=ingest.metrics,
        render_metrics=page.rendered.get,
        ssrf_policy=endpoint.policy,
        settings=settings,
        forget_key=authenticator.forget,
        version=installed_version(),
    )


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
        lambda path: hot_routes.find("POST", path) is not None,
        partial(contract_of, services.version),
        lifespan=lifespan,
    )
    app.state.services = services
    console = Console(
        app,
        authenticator,
        SessionSeal(pepper(settings), clock),
        bootstrap_servers=settings.required_bootstrap_servers(),
        needs_key=settings.auth_mode == "keys",
        trace_url=settings.ui_trace_url,
        version=services.version,
    )
    read_rate = settings.rate_read_per_second / settings.http_workers
    return Guard(
        app,
        hot_routes.find,
        Admission(authenticator, RateLimit("read", read_rate, clock)),
        RequestMetrics(services.metrics),
        console=console,
        lifespan=partial(lifespan, app),
    )


@cache
def contract_of(version: str) -> dict[str, Any]:
    """Return the contract, which is shared: do not change it."""
    document: dict[str, Any] = msgspec.json.decode((files("api") / "openapi.json").read_bytes())
    document["info"]["version"] = version
    return document
