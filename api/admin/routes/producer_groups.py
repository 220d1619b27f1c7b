"""Producer groups: the settings of their checks, and their check endpoints."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from api.admin.dependencies import (
    NO_STORE,
    MessageReader,
    ServicesDependency,
    StrictRoute,
    needs,
)
from api.admin.models.base import GroupName
from api.admin.models.page import Page, page_of
from api.admin.models.producer_groups import (
    EndpointTestResource,
    GroupQuery,
    GroupRequest,
    GroupResource,
    ReasonRequest,
    RegisteredGroup,
    RotateRequest,
    SimulationRequest,
    SimulationResource,
)
from api.admin.services import Services
from api.http.problems import invalid
from outbox.access import Caller, Scope
from outbox.checks.producer_group import (
    AnyVersion,
    GroupHealth,
    Precondition,
    ProducerGroup,
    RotatedSecret,
)
from outbox.checks.ssrf_guard import read_check_url
from outbox.errors import CheckUrlForbidden, UnknownGroup
from outbox.operators.message_view import GroupChecks
from outbox.telemetry.events import Event, get_logger

router = APIRouter(prefix="/v1/producer-groups", tags=["producer groups"], route_class=StrictRoute)

Reader = Annotated[Caller, needs(Scope.GROUPS_READ)]
Writer = Annotated[Caller, needs(Scope.GROUPS_WRITE)]
IfMatch = Annotated[str | None, Header(alias="If-Match")]
LAST_CHECKS: Final = 50
OF_INSTALLATION: Final = frozenset(
    {"check_interval_seconds", "check_max", "transaction_timeout_seconds", "max_age_seconds"}
)
"""What a PUT may omit, and the installation's settings then say; times in seconds."""
_ETAG: Final = re.compile(r'(?:W/)?"v(\d{1,9})"')


def _visible(producer_group: GroupName, request: Request) -> str:
    """Return the name of a group that the caller may see. Raises UnknownGroup."""
    caller: Caller = request.state.caller
    if not caller.sees(producer_group):
        raise UnknownGroup(producer_group)
    return producer_group


Name = Annotated[str, Depends(_visible)]


@router.get("", response_model=Page[GroupResource])
async def list_producer_groups(
    query: Annotated[GroupQuery, Query()], caller: Reader, services: ServicesDependency
) -> Any:
    """List registered groups, ordered by name."""
    one_more = query.limit + 1
    groups = await services.groups.page(caller.groups, query.after, one_more, unasked=query.unasked)
    return page_of(groups, query.limit, lambda group: group.name)


@router.get("/{producer_group}", response_model=GroupResource)
async def get_producer_group(
    caller: Reader, producer_group: Name, services: ServicesDependency, response: Response
) -> Any:
    """Return a group; use its ETag in If-Match."""
    group = await services.groups.get(producer_group)
    response.headers["ETag"] = etag(group)
    return group


@router.get("/{producer_group}/checks", response_model=GroupChecks)
async def list_group_checks(
    caller: MessageReader, producer_group: Name, services: ServicesDependency
) -> Any:
    """List the last 50 checks of a group, among the newest 5 000 checks of all groups."""
    group = await services.groups.get(producer_group)
    return await services.browser.checks(group.id, LAST_CHECKS)


@router.get("/{producer_group}/health", response_model=GroupHealth)
async def get_group_health(
    caller: Reader, producer_group: Name, services: ServicesDependency
) -> Any:
    """Return how many checks of a group are due, and how old its signing secret is."""
    return await services.groups.health(producer_group)


@router.put(
    "/{producer_group}",
    response_model=None,
    responses={200: {"model": GroupResource}, 201: {"model": RegisteredGroup}},
)
async def put_producer_group(
    caller: Writer,
    producer_group: Name,
    body: GroupRequest,
    services: ServicesDependency,
    response: Response,
    if_match: IfMatch = None,
) -> Any:
    """Register a group, or replace its settings; only registration returns a `check_secret`."""
    group = _group(producer_group, body, services)
    stored = await services.groups.put(group, _precondition(if_match), caller)
    services.name_cache.forget_groups()
    resource = GroupResource.model_validate(stored.group)
    response.headers["ETag"] = etag(stored.group)
    if stored.change is not None:
        _log_change(stored.change, producer_group, caller)
    if stored.change != "created":
        return resource
    response.status_code = 201
    response.headers.update(NO_STORE | {"Location": f"/v1/producer-groups/{producer_group}"})
    return RegisteredGroup(**resource.model_dump(), check_secret=stored.secret)


@router.delete("/{producer_group}", status_code=204)
async def delete_producer_group(
    caller: Writer, producer_group: Name, services: ServicesDependency, if_match: IfMatch = None
) -> Response:
    """Delete a group that has no undecided and no unpublished messages."""
    await services.groups.delete(producer_group, _precondition(if_match), caller.key_id)
    services.name_cache.forget_groups()
    _log_change("deleted", producer_group, caller)
    return Response(status_code=204)


@router.post("/{producer_group}/pause", response_model=GroupResource)
async def pause_producer_group(
    caller: Writer, producer_group: Name, body: ReasonRequest, services: ServicesDependency
) -> Any:
    """Stop the checks of a group; prepare, end and publishing continue."""
    return await _set_paused(producer_group, body, True, caller, services)


@router.post("/{producer_group}/resume", response_model=GroupResource)
async def resume_producer_group(
    caller: Writer, producer_group: Name, body: ReasonRequest, services: ServicesDependency
) -> Any:
    """Resume the checks of a group."""
    return await _set_paused(producer_group, body, False, caller, services)


@router.post("/{producer_group}/test")
async def test_check_endpoint(
    caller: Writer, producer_group: Name, services: ServicesDependency
) -> EndpointTestResource:
    """Send the endpoint one signed and one forged check; the answers decide nothing."""
    return await services.check_endpoint_probe.run(producer_group, caller.tenant)


@router.post("/{producer_group}/simulate")
async def simulate_checks(
    caller: Writer, producer_group: Name, body: SimulationRequest, services: ServicesDependency
) -> SimulationResource:
    """Send the endpoint valid, stale, forged, repeated and batch checks; they decide nothing."""
    return await services.check_endpoint_probe.simulate(producer_group, caller.tenant, body)


@router.post("/{producer_group}/rotate-secret")
async def rotate_check_secret(
    caller: Writer,
    producer_group: Name,
    body: RotateRequest,
    services: ServicesDependency,
    response: Response,
) -> RotatedSecret:
    """Give a group a new signing secret; both sign until the overlap ends."""
    rotated = await services.groups.rotate_secret(
        producer_group, body.overlap_seconds, caller.key_id
    )
    _log_change("secret_rotated", producer_group, caller)
    response.headers.update(NO_STORE)
    return rotated


def etag(group: ProducerGroup) -> str:
    """Return the entity tag of a group's version."""
    return f'"v{group.version}"'


async def _set_paused(
    name: str, body: ReasonRequest, paused: bool, caller: Caller, services: Services
) -> ProducerGroup:
    group = await services.groups.pause(
        name, body.reason, paused=paused, key_id=caller.key_id, operator=body.operator
    )
    services.name_cache.forget_groups()
    _log_change("paused" if paused else "resumed", name, caller)
    return group


def _group(name: str, body: GroupRequest, services: Services) -> ProducerGroup:
    """Return the group to store; omitted settings take the installation's defaults."""
    omitted = {
        field: getattr(services.settings, field)
        for field in OF_INSTALLATION.difference(body.model_fields_set)
    }
    values = body.model_dump() | omitted
    own = values.pop("check_secret")
    if values["max_age_seconds"] >= services.settings.retention_seconds:
        raise invalid("/max_age_seconds", "must be below the retention of messages")
    for place, topic in enumerate(values["topics"]):
        if topic.startswith("__"):
            raise invalid(f"/topics/{place}", "is reserved", "topic-reserved")
    try:
        read_check_url(values["check_url"], services.ssrf_policy)
    except CheckUrlForbidden as error:
        refusal = invalid("/check_url", "is not allowed", "check-url-forbidden")
        refusal.facts = {"rule": error.rule}
        raise refusal from None
    return ProducerGroup(id=0, name=name, secrets=(own,) if own else (), **values)


def _precondition(if_match: str | None) -> Precondition:
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return AnyVersion.ANY
    return frozenset(map(int, _ETAG.findall(if_match)))


def _log_change(change: str, name: str, caller: Caller) -> None:
    get_logger().info(Event.GROUP_CHANGED, change=change, producer_group=name, key_id=caller.key_id)
