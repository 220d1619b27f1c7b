"""What generators of clients need of the contract, in Go, Java, C#, Rust and TypeScript."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from typing import Any, Final

import pytest

from api.http.problems import KINDS
from tests.fixtures_paths import PROJECT
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT

FOLDER: Final = PROJECT / "deploy" / "openapi"
SCHEMAS: Final[dict[str, Any]] = DOCUMENT["components"]["schemas"]
OPERATIONS: Final = {
    each["operationId"]: each
    for operations in DOCUMENT["paths"].values()
    for each in operations.values()
}
BESIDE_ROUTES: Final = {"not-found", "method-not-allowed", "csrf-refused"}
KINDS_OF_OPERATIONS: Final = {
    *("keyed", "public", "requestBody", "path", "query", "header", "default"),
}
MESSAGE_ID: Final = {"$ref": "#/components/schemas/MessageId"}


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a document."""
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node:
        if isinstance(each, dict | list):
            yield from nodes(each)


ALL: Final = list(nodes([SCHEMAS, DOCUMENT["paths"]]))
MEMBERS: Final = [pair for each in ALL for pair in each.get("properties", {}).items()]
PARAMETERS: Final = [each for one in OPERATIONS.values() for each in one.get("parameters", ())]


def test_the_document_is_the_one_of_the_routes() -> None:
    """After a change: `.venv/bin/python deploy/openapi/write_openapi.py`."""
    written = runpy.run_path(str(FOLDER / "write_openapi.py"))["openapi_document"]()
    written["info"]["version"] = DOCUMENT["info"]["version"]
    assert written == DOCUMENT


def test_values_have_types_and_sizes() -> None:
    assert all(each.get("type") == "string" for each in ALL if "enum" in each)
    integers = [each for each in ALL if each.get("type") == "integer"]
    assert {each["format"] for each in integers} == {"int32", "int64"}
    assert SCHEMAS["Publication"]["properties"]["offset"]["format"] == "int64"
    times = [member for name, member in MEMBERS if re.search(r"(^|_)at$", name)]
    assert len(times) > 30
    assert all("date-time" in json.dumps(each) for each in times)
    ids = [member for name, member in MEMBERS if name == "message_id"]
    ids += [each["schema"] for each in PARAMETERS if each["name"] == "message_id"]
    assert len(ids) > 20
    assert all(each == MESSAGE_ID or each["anyOf"][0] == MESSAGE_ID for each in ids)


def test_patterns_are_read_by_engines_without_lookaround() -> None:
    patterns = {each["pattern"] for each in ALL if isinstance(each.get("pattern"), str)}
    assert len(patterns) > 5
    assert not [each for each in patterns if re.search(r"\(\?|\\u|\\[bB1-9]", each)]


def test_an_absent_parameter_is_not_null_and_no_member_is_always_refused() -> None:
    assert not [each["name"] for each in PARAMETERS if "null" in json.dumps(each["schema"])]
    assert not [name for name, member in MEMBERS if member == {} and name != "value"]


def test_each_operation_names_its_problems_and_headers() -> None:
    facts = json.loads((FOLDER / "operations.json").read_text("utf-8"))
    named_there = {key.split()[0] for each in facts.values() for key in each}
    assert named_there - KINDS_OF_OPERATIONS <= OPERATIONS.keys()
    named = {
        name: set(re.split("[:,] ", each["responses"]["default"]["description"])[1:])
        for name, each in OPERATIONS.items()
    }
    assert set().union(*named.values()) | BESIDE_ROUTES == KINDS.keys()
    assert "unknown-topic" not in named["endHalfMessage"]
    prepared = OPERATIONS["prepareHalfMessage"]["responses"]
    assert prepared["201"]["headers"].keys() == {"Location", "Idempotency-Replayed"}
    assert prepared["default"]["headers"].keys() == {"Retry-After"}


@pytest.mark.parametrize("name", ["PrepareRequest", "GroupRequest", "BulkRequest"])
def test_a_member_that_may_be_absent_may_be_null(name: str) -> None:
    schema = SCHEMAS[name]
    optional = schema["properties"].keys() - set(schema["required"])
    assert all("null" in json.dumps(schema["properties"][each]) for each in optional)


def test_the_check_is_a_callback_of_the_group() -> None:
    (called,) = OPERATIONS["putProducerGroup"]["callbacks"]["transactionCheck"].values()
    body = called["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/CheckRequest"}
