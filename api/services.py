"""What the cold routes use, gathered once by ``wiring`` and handed to the routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from api.directory import Directory
from api.endpoint_tests import EndpointTests
from api.known_topics import KnownTopics
from outbox.access import Caller
from outbox.callback_guard import CallbackPolicy
from outbox.operator_ports import Acceptances, BulkActions, ReconciliationRuns, Repairs
from outbox.ports import ApiKeys, MessageBrowser, Operations, ProducerGroups, Readiness
from outbox.telemetry import Metrics

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
    directory: Directory
    topics: KnownTopics
    metrics: Metrics
    render_metrics: Render
    callback_policy: Callable[[], CallbackPolicy]
    group_defaults: GroupDefaults
    endpoint_tests: EndpointTests
    forget_keys: Callable[[], None]
    heartbeat_seconds: int = 5
    version: str = "0"
    metrics_here: bool = True
    """Whether ``/metrics`` is served on this listener."""

    async def groups_of(self, caller: Caller) -> frozenset[int] | None:
        """Return the ids of the groups that a caller is bound to; None means all."""
        return await self.directory.ids_of(caller)
