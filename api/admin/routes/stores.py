"""The whole installation: shards, partitions, health, settings.

All groups share these, so a key that is bound to some groups sees none of them.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from api.admin.dependencies import Admin, ReportReader, ServicesDependency, StrictRoute
from api.admin.models.page import Rows
from api.http.shared_read import SharedRead
from outbox.access import Caller
from outbox.operators.activity import LastHour
from outbox.operators.health_check import HealthCheck
from outbox.operators.store_view import PartitionState, ShardState, ShownSetting

router = APIRouter(prefix="/v1", tags=["installation"], route_class=StrictRoute)


@router.get("/shards", response_model=Rows[ShardState])
async def list_shards(caller: ReportReader, services: ServicesDependency) -> Any:
    """List the relay's shards; a halted one with its reason and the way on."""
    return await _seen(caller, services.stores.shards)


@router.get("/partitions", response_model=Rows[PartitionState])
async def list_partitions(caller: ReportReader, services: ServicesDependency) -> Any:
    """List the last stable offset of each partition, and what holds it up."""
    return await _seen(caller, services.stores.partitions)


@router.get("/rates", response_model=LastHour)
async def list_rates(caller: ReportReader, services: ServicesDependency) -> Any:
    """Count the last hour by minute, group and API key, and a day's checks by outcome."""
    if caller.groups is not None:
        return LastHour(begins_at=None, data=(), groups=(), api_keys=(), check_outcomes=())
    return await services.activity.last_hour()


@router.get("/doctor", response_model=Rows[HealthCheck], response_model_exclude_none=True)
async def get_health_report(caller: ReportReader, services: ServicesDependency) -> Any:
    """Check PostgreSQL, Kafka and the checker; no producer's endpoint is asked."""
    return await _seen(caller, services.stores.health)


@router.get("/config", response_model=Rows[ShownSetting])
async def get_configuration(caller: Admin, services: ServicesDependency) -> Any:
    """Return the settings of the process that answers, without secrets."""
    found = services.stores.settings() if caller.groups is None else []
    return {"data": found}


async def _seen(caller: Caller, look: SharedRead[Any]) -> dict[str, Any]:
    """Return what a look finds; nothing for a key that is bound to some groups."""
    return {"data": await look.get() if caller.groups is None else []}
