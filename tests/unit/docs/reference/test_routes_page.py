"""The page of routes lists every route of the contract, with its scope."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.fixtures_paths import PROJECT
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
