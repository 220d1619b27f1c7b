"""The routers of all cold routes, in the order of the OpenAPI document."""

from __future__ import annotations

from typing import Final

from api.admin.routes import (
    api_keys,
    bulk_actions,
    half_messages,
    probes,
    problem_pages,
    producer_groups,
    reconciliations,
)

ROUTERS: Final = (
    half_messages.router,
    bulk_actions.router,
    producer_groups.router,
    reconciliations.router,
    api_keys.router,
    probes.router,
    problem_pages.router,
)
