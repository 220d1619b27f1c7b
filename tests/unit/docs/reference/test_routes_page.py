"""The page of routes lists every route of the contract, with its scope and its query."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from tests.fixtures_paths import PROJECT
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT
from tests.integration.api.http.authentication.fixtures_routes import (
    PLACES,
    PUBLIC,
    ROUTES,
)

PAGE: Final = (PROJECT / "docs" / "reference" / "routes.md").read_text("utf-8")
ROW: Final = re.compile(r"^\| `([A-Z]+) (/[^`]+)`(?: (∗))? \| (.+) \|$", re.MULTILINE)
ROWS: Final = {(found[1], found[2]): found for found in ROW.finditer(PAGE)}
GUARDED: Final = sorted(PLACES.keys() - PUBLIC)
BESIDE_THE_CONTRACT: Final = ("GET", "/openapi.json")


def test_the_page_lists_the_routes_of_the_contract_and_no_other() -> None:
    assert sorted(ROWS.keys() - {BESIDE_THE_CONTRACT}) == sorted(PLACES.values())
    assert len(ROW.findall(PAGE)) == len(ROWS), "each once"


@pytest.mark.parametrize("operation_id", GUARDED)
def test_a_route_is_listed_with_its_scope_and_with_who_sees_it(operation_id: str) -> None:
    row, route = ROWS[PLACES[operation_id]], ROUTES[operation_id]
    assert row[4].startswith(f"`{route.scope}` |")
    assert (row[3] is not None) == route.of_all_groups


@pytest.mark.parametrize("operation_id", GUARDED)
def test_a_route_is_listed_with_its_query_and_without_a_field_that_it_has_not(
    operation_id: str,
) -> None:
    method, path = PLACES[operation_id]
    operation = DOCUMENT["paths"][path][method.lower()]
    query = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
    _scope, asked, _what = ROWS[method, path][4].split(" | ")
    words = {found.partition("=")[0] for found in re.findall(r"`([^`]+)`", asked)}
    assert query <= words
    assert words <= query | fields_of_body(operation) | {"messages:payload", "If-Match"}


def fields_of_body(operation: dict[str, Any]) -> set[str]:
    """Return the members of a request's body; none if it has no body."""
    if "requestBody" not in operation:
        return set()
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = schema["$ref"].rpartition("/")[2]
    return set(DOCUMENT["components"]["schemas"][name]["properties"])
