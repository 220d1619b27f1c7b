"""The page of the contract: what each route takes and answers, without help from elsewhere."""

from __future__ import annotations

import html
import json
import re
from typing import Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from api.docs_page import docs_page
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT

PAGE: Final = docs_page(DOCUMENT)
SCHEMAS: Final[dict[str, Any]] = DOCUMENT["components"]["schemas"]


def part(identity: str) -> str:
    """Return the page from one heading to the next."""
    return PAGE.partition(f'<h3 id="{identity}">')[2].partition("<h3 ")[0]


def test_the_page_needs_no_script_and_no_other_host() -> None:
    assert not re.search(r"<script|<link|src=|@import|https?://(?!billing\.example)", PAGE)


def test_each_route_shows_its_parameters_members_headers_and_problems() -> None:
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            shown = part(operation["operationId"])
            assert operation["responses"]["default"]["description"] in shown
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in shown
    prepared = part("prepareHalfMessage")
    for member in SCHEMAS["PrepareRequest"]["properties"] | SCHEMAS["PreparedHalf"]["properties"]:
        assert f"<code>{member}</code>" in prepared
    assert "Header <code>Location</code>" in prepared
    for name, schema in SCHEMAS.items():
        assert all(
            f"<code>{member}</code>" in part(name) for member in schema.get("properties", ())
        )


def test_the_example_of_each_body_fits_its_schema() -> None:
    bodies = [
        (operation["operationId"], operation["requestBody"]["content"]["application/json"])
        for operations in DOCUMENT["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    for identity, body in bodies:
        found = re.search(r"<summary>Body</summary>.*?<pre>(.*?)</pre>", part(identity), re.DOTALL)
        assert found is not None, identity
        checked = {**body["schema"], "components": DOCUMENT["components"]}
        Draft202012Validator(checked).validate(json.loads(html.unescape(found[1])))
    assert len(bodies) > 15
