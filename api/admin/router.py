"""The routers of all cold routes, in the order of the OpenAPI document."""

from __future__ import annotations

from typing import Final

from api.admin.routes import (
    api_keys,
    audit_log,
    bulk_actions,
    half_messages,
    held_records,
    probes,
    problem_pages,
    producer_groups,
    reconciliations,
    records,
    stores,
)

ROUTERS: Final = (
    half_messages.router,
    bulk_actions.router,
    held_records.router,
    records.router,
    producer_groups.router,
    reconciliations.router,
    api_keys.router,
    audit_log.router,
    stores.router,
    probes.router,
    problem_pages.router,
)
