"""Mutants of access: each check of a scope and of a group, of each route, left out in turn.

Those of the framework's routes are made from the source: whatever checks a route has, each of them
has its mutant, also a route that is added later.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from fastapi.routing import APIRoute

from api.admin.router import ROUTERS
from api.app import operation_id
from tests.fixtures_paths import PROJECT
from tests.integration.mutants.fixtures_mutant import ProductMutant

MATRIX: Final = "tests/integration/api/http/authentication/test_routes_and_keys.py"
REACH: Final = "tests/integration/api/admin/test_key_reach.py"
FOLDER: Final = "api/admin/routes"
ROUTE_FILES: Final = (
    "half_messages",
    "bulk_actions",
    "producer_groups",
    "reconciliations",
    "api_keys",
    "held_records",
    "records",
    "audit_log",
    "installation",
)
HOT: Final = "api/ingest/hot_routes.py"
UNBOUND: Final = "Caller(key_id=caller.key_id, scopes=caller.scopes, groups=None)"
GROUP_CHECKS: Final = {
    r"\bfind\(services, (caller)\b": UNBOUND,
    r"_run\(run_id, (caller)\b": UNBOUND,
    r"_settle\(message_id, body, (caller), services": UNBOUND,
    r"_set_paused\([^)]*, (caller), services\)": UNBOUND,
    r"(await services\.groups_of\(caller\))": "None",
    r"(_require_visible\(caller, producer_group\))": "None",
    r"(caller\.groups\b)": "None",
    r"(caller\.covers\([^)]*\))": "True",
}
"""How a route asks for the groups of its caller, and what asks nothing."""


def scope_killer(operation: str) -> str:
    """Return the test that notices an operation without its scope."""
    return f"{MATRIX}::test_a_route_needs_its_scope[{operation}]"


def group_killer(operation: str) -> str:
    """Return the test that notices an operation without its group check."""
    return f"{MATRIX}::test_the_objects_of_another_group_look_like_missing_ones[{operation}]"


def _cold() -> Iterator[ProductMutant]:
    for name in ROUTE_FILES:
        file = f"{FOLDER}/{name}.py"
        text = (PROJECT / file).read_text("utf-8")
        scopes = dict(
            re.findall(r"^(\w+) = Annotated\[Caller, needs\(Scope\.(\w+)\)\]", text, re.M)
        )
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.AsyncFunctionDef) and function.decorator_list:
                source = ast.get_source_segment(text, function) or ""
                yield from _of_route(file, function.name, source, scopes)


def _of_route(
    file: str, function: str, source: str, scopes: dict[str, str]
) -> Iterator[ProductMutant]:
    operation = OPERATIONS[function]
    declared = re.search(r"\bcaller: (\w+)", source)
    if declared is None:
        return
    other = "MESSAGES_END" if scopes[declared[1]] == "MESSAGES_READ" else "MESSAGES_READ"
    yield ProductMutant(
        promise=f"{operation} needs its scope",
        file=file,
        rule=source[: declared.end(1)],
        broken=f"{source[: declared.start(1)]}Annotated[Caller, needs(Scope.{other})]",
        killer=scope_killer(operation),
    )
    checks = [
        (found, without)
        for pattern, without in GROUP_CHECKS.items()
        for found in re.finditer(pattern, source)
    ]
    for number, (found, without) in enumerate(checks):
        yield ProductMutant(
            promise=f"{operation} hides the objects of other groups ({number})",
            file=file,
            rule=source[: found.end(1)],
            broken=source[: found.start(1)] + without,
            killer=group_killer(operation),
        )


def _operations() -> dict[str, str]:
    """Return the operation id of each function of the framework's routes."""
    routes = [route for router in ROUTERS for route in router.routes]
    return {
        route.name: route.operation_id or operation_id(route)
        for route in routes
        if isinstance(route, APIRoute)
    }


OPERATIONS: Final = _operations()


def _hot() -> Iterator[ProductMutant]:
    scopes = {
        "prepare": ("HotRoute(PREFIX, write,", "HotRoute(PREFIX, end,"),
        "prepareBatch": ('HotRoute(f"{PREFIX}/batch", write,', 'HotRoute(f"{PREFIX}/batch", end,'),
        "end": ('}}/end", end, True, False,', '}}/end", write, True, False,'),
        "endBatch": (
            'HotRoute(f"{PREFIX}/end-batch", end,',
            'HotRoute(f"{PREFIX}/end-batch", write,',
        ),
    }
    for operation, (rule, broken) in scopes.items():
        yield ProductMutant(
            promise=f"{operation} needs its scope",
            file=HOT,
            rule=rule,
            broken=broken,
            killer=scope_killer(operation),
        )
    asked = "groups = await self._ingest.group_ids(request.caller)\n        "
    for operation, following in (("end", "decided ="), ("endBatch", "ends =")):
        yield ProductMutant(
            promise=f"{operation} hides the objects of other groups (0)",
            file=HOT,
            rule=f"{asked}{following}",
            broken=f"groups = None\n        {following}",
            killer=group_killer(operation),
        )
    for operation in ("prepare", "prepareBatch"):
        yield ProductMutant(
            promise=f"{operation} hides the objects of other groups (0)",
            file="api/ingest/ingest.py",
            rule="for group, _ in pairs if caller.sees(group)",
            broken="for group, _ in pairs",
            killer=group_killer(operation),
        )


def _keys_never_grow() -> Iterator[ProductMutant]:
    change = "outbox/checks/group_change.py"
    for promise, file, rule, broken, killer in (
        (
            "An administrator alone registers a group",
            change,
            "    if stored is None:\n        _require(",
            "    if False:\n        _require(",
            "test_a_new_group_has_topics_so_an_administrator_registers_it",
        ),
        (
            "An administrator alone changes topics",
            change,
            "    elif set(stored.topics) != set(wanted.topics):\n",
            "    elif False:\n",
            "test_the_topics_of_a_group_are_changed_by_an_administrator_alone",
        ),
        (
            "Who sends the payload with checks may read it",
            change,
            "    if wanted.check_payload and not",
            "    if False and not",
            "test_the_payload_goes_into_checks_only_by_who_may_read_it",
        ),
        (
            "Who sends the payload elsewhere may read it",
            change,
            " and stored.check_url == wanted.check_url",
            "",
            "test_the_payload_goes_into_checks_only_by_who_may_read_it",
        ),
        (
            "A key of some groups makes no key of all groups",
            "outbox/access.py",
            "own_groups = self.groups is None or self.groups.issuperset(groups)",
            'own_groups = self.groups is None or self.groups.issuperset({*groups} - {"*"})',
            "test_a_bound_administrator_makes_no_key_beyond_its_own_groups",
        ),
    ):
        yield ProductMutant(
            promise=promise, file=file, rule=rule, broken=broken, killer=f"{REACH}::{killer}"
        )


ACCESS_MUTANTS: Final = (
    *_cold(),
    *_hot(),
    *_keys_never_grow(),
    ProductMutant(
        promise="A key that is written to the database directly names groups that can exist",
        file="outbox/access.py",
        rule="if re.fullmatch(KEY_GROUP, group) is None:",
        broken="if not group:",
        killer=(
            "tests/integration/cli/stores/test_bootstrap_key.py"
            "::test_what_the_api_refuses_is_refused[a line end]"
        ),
    ),
    ProductMutant(
        promise="No filter finds messages of another group",
        file="outbox/postgres/operators/candidates.py",
        rule="if wanted.groups is not None:",
        broken="if wanted.groups is not None and wanted.transaction_id is None:",
        killer=f"{MATRIX}::test_no_query_shows_the_objects_of_another_group[listHalfMessages]",
    ),
    ProductMutant(
        promise="No cursor continues a list of another group",
        file="outbox/postgres/operators/candidates.py",
        rule="if wanted.groups is not None:",
        broken="if wanted.groups is not None and wanted.before is None:",
        killer=f"{MATRIX}::test_no_query_shows_the_objects_of_another_group[listHalfMessages]",
    ),
    ProductMutant(
        promise="The next migrate up takes back what everybody may read",
        file="migrations/grants.sql",
        rule="REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM PUBLIC;",
        broken="",
        killer=(
            "tests/integration/postgres/schema/test_roles.py"
            "::test_migrate_up_takes_back_what_was_granted_by_hand"
            "[GRANT SELECT ON outbox.api_key TO PUBLIC]"
        ),
    ),
    ProductMutant(
        promise="A tenant with many searches for records refuses none of another tenant",
        file="api/admin/routes/records.py",
        rule="message_at(caller.tenant, topic",
        broken="message_at(None, topic",
        killer=(
            "tests/integration/api/admin/messages/test_records.py"
            "::test_the_searches_of_a_tenant_refuse_none_of_another_tenant"
        ),
    ),
    ProductMutant(
        promise="A tenant who waits for many messages leaves places to others",
        file="api/http/in_flight.py",
        rule="self._held[tenant] + places <= self._free - places",
        broken="places <= self._free",
        killer=(
            "tests/integration/api/ingest/test_waiting.py"
            "::test_a_tenant_with_many_waits_leaves_places_to_another_tenant[socket]"
        ),
    ),
    ProductMutant(
        promise="A tenant leaves tests of check endpoints to others",
        file="api/admin/check_endpoint_probe.py",
        rule=" or tenants.count(tenant) >= OF_A_TENANT",
        broken="",
        killer=(
            "tests/integration/api/admin/test_check_endpoint_probe.py"
            "::test_a_group_has_one_test_at_a_time_a_tenant_two_and_all_together_four"
        ),
    ),
    ProductMutant(
        promise="Keys that descend from another one share its turns of bulk actions",
        file="outbox/postgres/operators/bulk_actions.sql",
        rule="coalesce(own.root_key_id, own.key_id)",
        broken="own.key_id",
        killer=(
            "tests/integration/postgres/operators/test_bulk_turns.py"
            "::test_keys_that_a_key_created_for_fewer_groups_share_its_turns"
        ),
    ),
    ProductMutant(
        promise="A key that is revoked elsewhere is remembered for seconds and not for ever",
        file="api/http/authentication/key_authenticator.py",
        rule="if known is not None and known[0] > oldest:",
        broken="if known is not None:",
        killer=(
            "tests/integration/api/http/authentication/test_remembered_keys.py"
            "::test_what_became_of_a_key_elsewhere_is_known_here_in_time[revoked]"
        ),
    ),
)
