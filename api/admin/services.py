"""What the cold routes use, gathered once by ``wiring`` and handed to the routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from api.admin.check_endpoint_probe import CheckEndpointProbe
from api.ingest.name_cache import NameCache
from api.ingest.topic_cache import TopicCache
from outbox.access import ApiKeys, Caller
from outbox.checks.ports import ProducerGroups
from outbox.checks.ssrf_guard import SsrfPolicy
from outbox.operators.acceptances import Acceptances
from outbox.operators.bulk_actions import BulkActions
from outbox.operators.ports import MessageBrowser, Operations, Readiness
from outbox.operators.repairs import Repairs
from outbox.reconciliation.ports import ReconciliationRuns
from outbox.telemetry.metrics import Metrics

Render = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDefaults:
    """Settings of a producer group whose PUT leaves them out; times in seconds."""

    values: Mapping[str, int] = field(default_factory=dict)
    retention_seconds: int = 604_800


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The use cases and facts behind the cold routes."""

    browser: MessageBrowser
    operations: Operations
    bulk_actions: BulkActions
    wake_bulk_runner: Callable[[], None]
    groups: ProducerGroups
    keys: ApiKeys
    runs: ReconciliationRuns
    repairs: Repairs
    acceptances: Acceptances
    readiness: Readiness
    directory: NameCache
    topics: TopicCache
    metrics: Metrics
    render_metrics: Render
    callback_policy: Callable[[], SsrfPolicy]
    group_defaults: GroupDefaults
    endpoint_tests: CheckEndpointProbe
    forget_keys: Callable[[], None]
    heartbeat_seconds: int = 5
    version: str = "0"
    metrics_here: bool = True
    """Whether ``/metrics`` is served on this listener."""

    async def groups_of(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups that a caller is bound to; None means all."""
        return await self.directory.ids_of(caller)
