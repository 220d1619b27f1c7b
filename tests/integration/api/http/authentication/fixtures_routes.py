"""Every route of the OpenAPI document that needs a key: its scope, and a request that needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from api.http.page_token import encode_page_token
from outbox.access import Scope
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from tests.integration.api.fixtures_service import CHECK_URL, TOPIC, Service, prepare_body
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT

WHO: Final = {"operator": "o", "reason": "r"}
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
KEYED: Final[dict[str, Any]] = {"key": "key-of-theirs", "tags": ["tag-of-theirs"]}
"""By what else the message can be found."""


@dataclass(frozen=True, kw_only=True)
class RouteObjects:
    """The objects that requests name; the ids of one owner, or ids of nothing."""

    group: str
    idle_group: str
    """A group without messages, which can be deleted."""
    message: str
    held: str
    """A message whose record Kafka refuses."""
    record: tuple[str, int, int]
    """Topic, partition and offset of a record of the message."""
    transaction: str
    key: str
    owner: str
    """The key that has ordered the action."""
    action: str
    run: str

    def named_in(self, text: str) -> list[str]:
        """Return which of them a text shows."""
        names = (
            *(self.group, self.message, self.held, self.transaction),
            *(self.key, self.action, self.run),
        )
        return [name for name in names if name in text]


NOTHING: Final = RouteObjects(
    group="nobody",
    idle_group="nobody",
    message="0" * 36,
    held="0" * 36,
    record=("nothing", 0, 0),
    transaction="nothing",
    key="0" * 16,
    owner="0" * 16,
    action="00000000-0000-4000-8000-000000000000",
    run="nothing",
)

Body = Callable[[RouteObjects], Any]


@dataclass(frozen=True, kw_only=True)
class GuardedRoute:
    """The scope of a route, and its request about some objects."""

    scope: Scope
    body: Body | None = None
    of_all_groups: bool = False
    """Only a key of every group sees the objects of this route."""
    shows: Callable[[RouteObjects], str] | None = None
    """What a list shows to whom it belongs."""


def _just(body: Any) -> Body:
    return lambda _: body


ROUTES: Final[Mapping[str, GuardedRoute]] = {
    "prepareHalfMessage": GuardedRoute(
        scope=Scope.MESSAGES_WRITE, body=lambda its: prepare_body(producer_group=its.group)
    ),
    "prepareHalfMessageBatch": GuardedRoute(
        scope=Scope.MESSAGES_WRITE,
        body=lambda its: {"items": [prepare_body(producer_group=its.group)]},
    ),
    "endHalfMessage": GuardedRoute(scope=Scope.MESSAGES_END, body=_just({"decision": "COMMIT"})),
    "endHalfMessageBatch": GuardedRoute(
        scope=Scope.MESSAGES_END,
        body=lambda its: {"items": [{"message_id": its.message, "decision": "COMMIT"}]},
    ),
    "listHalfMessages": GuardedRoute(scope=Scope.MESSAGES_READ, shows=lambda its: its.message),
    "getHalfMessage": GuardedRoute(scope=Scope.MESSAGES_READ),
    "getHalfMessageHistory": GuardedRoute(scope=Scope.MESSAGES_READ),
    "recheckHalfMessage": GuardedRoute(scope=Scope.OPS_FORCE, body=_just(WHO)),
    "forceEndHalfMessage": GuardedRoute(
        scope=Scope.OPS_FORCE, body=_just({**WHO, "decision": "COMMIT"})
    ),
    "beginBulkAction": GuardedRoute(
        scope=Scope.OPS_FORCE,
        body=lambda its: {
            **WHO,
            "action": "recheck",
            "filter": {"transaction_id": its.transaction},
            "dry_run": True,
        },
        shows=lambda its: its.message,
    ),
    "getBulkAction": GuardedRoute(scope=Scope.OPS_FORCE),
    "cancelBulkAction": GuardedRoute(scope=Scope.OPS_FORCE, body=_just(WHO)),
    "listProducerGroups": GuardedRoute(scope=Scope.GROUPS_READ, shows=lambda its: its.group),
    "getProducerGroup": GuardedRoute(scope=Scope.GROUPS_READ),
    "listGroupChecks": GuardedRoute(scope=Scope.MESSAGES_READ),
    "getGroupHealth": GuardedRoute(scope=Scope.GROUPS_READ),
    "putProducerGroup": GuardedRoute(
        scope=Scope.GROUPS_WRITE, body=_just({"check_url": CHECK_URL, "check_max": 3})
    ),
    "deleteProducerGroup": GuardedRoute(scope=Scope.GROUPS_WRITE),
    "pauseProducerGroup": GuardedRoute(scope=Scope.GROUPS_WRITE, body=_just({"reason": "r"})),
    "resumeProducerGroup": GuardedRoute(scope=Scope.GROUPS_WRITE, body=_just({"reason": "r"})),
    "testCheckEndpoint": GuardedRoute(scope=Scope.GROUPS_WRITE),
    "simulateChecks": GuardedRoute(scope=Scope.GROUPS_WRITE, body=_just({})),
    "rotateCheckSecret": GuardedRoute(scope=Scope.GROUPS_WRITE, body=_just({})),
    "listReconciliations": GuardedRoute(
        scope=Scope.REPORTS_READ, of_all_groups=True, shows=lambda its: its.run
    ),
    "getReconciliation": GuardedRoute(scope=Scope.REPORTS_READ, of_all_groups=True),
    "listDiscrepancies": GuardedRoute(scope=Scope.REPORTS_READ, of_all_groups=True),
    "acceptFinding": GuardedRoute(
        scope=Scope.OPS_FORCE,
        of_all_groups=True,
        body=_just({**WHO, "until": "2099-01-01T00:00:00Z"}),
    ),
    "getReconciliationReport": GuardedRoute(scope=Scope.REPORTS_READ, of_all_groups=True),
    "listHeldRecords": GuardedRoute(scope=Scope.MESSAGES_READ, shows=lambda its: its.held),
    "releaseHeldRecord": GuardedRoute(scope=Scope.OPS_FORCE, body=_just(WHO)),
    "dropHeldRecord": GuardedRoute(scope=Scope.OPS_FORCE, body=_just(WHO)),
    "getRecord": GuardedRoute(scope=Scope.MESSAGES_READ),
    "listAuditLog": GuardedRoute(scope=Scope.REPORTS_READ, shows=lambda its: its.message),
    "listShards": GuardedRoute(
        scope=Scope.REPORTS_READ, of_all_groups=True, shows=lambda _: '"shard":0'
    ),
    "listPartitions": GuardedRoute(
        scope=Scope.REPORTS_READ, of_all_groups=True, shows=lambda _: PROGRESS_TOPIC
    ),
    "listRates": GuardedRoute(
        scope=Scope.REPORTS_READ, of_all_groups=True, shows=lambda _: '"name":"prepared"'
    ),
    "getHealthReport": GuardedRoute(
        scope=Scope.REPORTS_READ, of_all_groups=True, shows=lambda _: "postgres version"
    ),
    "getConfiguration": GuardedRoute(
        scope=Scope.ADMIN, of_all_groups=True, shows=lambda _: "OUTBOX_HTTP_BIND"
    ),
    "createApiKey": GuardedRoute(
        scope=Scope.ADMIN,
        body=lambda its: {
            "name": "n",
            "producer_groups": [its.group],
            "scopes": ["messages:read"],
        },
    ),
    "listApiKeys": GuardedRoute(scope=Scope.ADMIN, shows=lambda its: its.key),
    "revokeApiKey": GuardedRoute(scope=Scope.ADMIN),
}
"""By operation id."""

PLACES: Final = {
    operation["operationId"]: (method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
"""Method and path of every operation of the contract."""
QUERIES: Final = {
    operation["operationId"]: sorted(names)
    for operations in DOCUMENT["paths"].values()
    for method, operation in operations.items()
    if (
        names := {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
    )
    and method == "get"
}
"""The query parameters of every operation that reads."""
BEGIN: Final = "2020-01-01T00:00:00Z"
FIRST, LAST = encode_page_token("0"), encode_page_token(str(2**62))
QUERY_VALUES: Final[Mapping[str, Callable[[RouteObjects], str]]] = {
    "producer_group": lambda its: its.group,
    "message_id": lambda its: its.message,
    "transaction_id": lambda its: its.transaction,
    "trace_id": lambda _: TRACE,
    "key": lambda _: KEYED["key"],
    "tag": lambda _: KEYED["tags"][0],
    "topic": lambda _: TOPIC,
    "state": lambda _: "PREPARED",
    "decided_by": lambda _: "producer",
    "min_checks": lambda _: "1",
    "last_outcome": lambda _: "unknown",
    "last_http_status": lambda _: "200",
    "include": lambda _: "payload",
    "refused": lambda _: "true",
    "dropped": lambda _: "false",
    "unasked": lambda _: "true",
    "action": lambda _: "message.recheck",
    "operator": lambda _: WHO["operator"],
    "key_id": lambda its: its.owner,
    "kind": lambda _: "missing",
    "finding_class": lambda _: "LOST",
    "status": lambda _: "open",
    "hour": lambda _: BEGIN,
    "limit": lambda _: "100",
    **dict.fromkeys(("prepared_from", "at_from"), lambda _: BEGIN),
    **dict.fromkeys(("prepared_to", "at_to"), lambda _: "2100-01-01T00:00:00Z"),
}
"""For each query parameter, what finds the objects; the cursors are below."""
CURSORS: Final = {
    "listHalfMessages": LAST,
    "listAuditLog": LAST,
    "listReconciliations": encode_page_token("2100-01-01T00:00:00+00:00 z"),
}
"""Before all objects, where that is not the number 0 or the smallest text."""
FINDS_NOTHING: Final = {"listProducerGroups": {"unasked"}, "listApiKeys": {"refused"}}
"""Whose owner has no such object."""
BULK_FILTERS: Final = sorted(
    DOCUMENT["components"]["schemas"]["BulkConditions"]["properties"].keys() - {"finding_ids"}
)
"""The filters of a bulk action; that of findings has a test of its own."""
OF_HELD: Final = frozenset({"releaseHeldRecord", "dropHeldRecord"})
"""The operations on a record that Kafka refuses."""
PUBLIC: Final = frozenset(
    operation["operationId"]
    for operations in DOCUMENT["paths"].values()
    for operation in operations.values()
    if operation.get("security") == []
)


async def call(
    service: Service,
    operation: str,
    objects: RouteObjects,
    key: Mapping[str, str],
    query: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """Send an operation's request about these objects; every answer has one request id."""
    method, template = PLACES[operation]
    route = ROUTES[operation]
    group = objects.idle_group if operation == "deleteProducerGroup" else objects.group
    path = template.format(
        message_id=objects.held if operation in OF_HELD else objects.message,
        producer_group=group,
        action_id=objects.action,
        key_id=objects.key,
        run_id=objects.run,
        finding_id="a",
        form="html",
        topic=objects.record[0],
        partition=objects.record[1],
        offset=objects.record[2],
    )
    headers = {"X-Request-Id": "one", **key}
    if operation == "putProducerGroup":
        headers["If-Match"] = "*"
    body = None if route.body is None else route.body(objects)
    return await service.client.request(method, path, headers=headers, json=body, params=query)
