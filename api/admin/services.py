"""The use cases behind the cold routes; ``wiring`` builds them once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.admin.check_endpoint_probe import CheckEndpointProbe
from api.http.shared_read import SharedRead
from api.ingest.name_cache import NameCache
from api.ingest.topic_cache import TopicCache
from outbox.access import Caller
from outbox.checks.ssrf_guard import SsrfPolicy
from outbox.settings.catalogue import Settings
from outbox.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from api.stores_view import StoresView
    from outbox.postgres.checks.producer_groups import PostgresProducerGroups
    from outbox.postgres.messages.audit_log import PostgresAuditLog
    from outbox.postgres.operators.activity import PostgresActivity
    from outbox.postgres.operators.api_keys import PostgresApiKeys
    from outbox.postgres.operators.bulk_actions import PostgresBulkActions
    from outbox.postgres.operators.held_admin import PostgresHeldAdmin
    from outbox.postgres.operators.message_browser import PostgresMessageBrowser
    from outbox.postgres.operators.operations import PostgresOperations
    from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The use cases and values behind the cold routes."""

    browser: PostgresMessageBrowser
    operations: PostgresOperations
    bulk_actions: PostgresBulkActions
    held: PostgresHeldAdmin
    audit_log: PostgresAuditLog
    activity: PostgresActivity
    stores: StoresView
    groups: PostgresProducerGroups
    keys: PostgresApiKeys
    runs: PostgresReconciliationRuns
    readiness: SharedRead[Mapping[str, str]]
    """PostgreSQL's checks of the readiness, each with its result."""
    name_cache: NameCache
    topic_cache: TopicCache
    metrics: Metrics
    render_metrics: Callable[[], Awaitable[bytes]]
    ssrf_policy: SsrfPolicy
    settings: Settings
    check_endpoint_probe: CheckEndpointProbe
    forget_key: Callable[[str], None]
    """Drops what this process remembers of a key, by its id."""
    version: str = "0"

    async def groups_of(self, caller: Caller) -> Sequence[int] | None:
        """Return the ids of the groups a caller is bound to; None means every group."""
        ids = await self.name_cache.group_ids(caller)
        return None if ids is None else sorted(ids)
