"""Writes the OpenAPI document, `api/openapi.json`, which the API serves.

It has the framework's routes, and those of `hot_routes.json`: the hot routes and the check.
`operations.json` has the problems and the headers of operations, by what an operation is or has.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from api.admin.router import ROUTERS
from api.guard import is_public
from api.http.problems import MEDIA_TYPE
from api.ingest.schemas import (
    EndBatch,
    EndBatchAnswer,
    EndRequest,
    PrepareBatch,
    PrepareBatchAnswer,
)

HERE: Final = Path(__file__).parent
PROJECT: Final = HERE.parents[1]
WRITTEN: Final = PROJECT / "api" / "openapi.json"
CHECKS: Final = PROJECT / "docs" / "schemas"
TITLE: Final = "Transactional outbox for Kafka with half messages"
DESCRIPTION: Final = (
    "Prepare a half message, run your local transaction, end it: COMMIT makes it exactly one"
    " record in its Kafka topic, ROLLBACK discards it. If no end arrives, the producer is asked."
)
_SCHEMAS: Final = "#/components/schemas/"
_HEADERS: Final = "#/components/headers/"
_STRUCTS: Final = (PrepareBatch, EndRequest, EndBatch, PrepareBatchAnswer, EndBatchAnswer)
"""They refer to all the others."""
_CHECKS: Final = {"CheckRequest": "check-request", "CheckAnswer": "check-answer"}
_MESSAGE_ID: Final = {"$ref": _SCHEMAS + "MessageId"}
_IDS: Final = {"message_id", "message_ids", "sample"}
"""The members that hold ids of messages."""
_NULL: Final = {"type": "null"}
_INT32_END: Final = 2**31


def main() -> None:
    """Write the document."""
    WRITTEN.write_bytes(msgspec.json.format(msgspec.json.encode(openapi_document()), indent=1))


def openapi_document() -> dict[str, Any]:
    """Return the contract of all routes; the API adds its version."""
    default: dict[int | str, dict[str, Any]] = {"default": {}}
    app = FastAPI(openapi_url=None, generate_unique_id_function=operation_id, responses=default)
    for router in ROUTERS:
        app.include_router(router)
    document = get_openapi(title=TITLE, version="0", description=DESCRIPTION, routes=app.routes)
    ours = msgspec.json.decode((HERE / "hot_routes.json").read_bytes())
    for path, operations in ours.pop("paths").items():
        document["paths"].setdefault(path, {}).update(operations)
    registration = document["paths"]["/v1/producer-groups/{producer_group}"]["put"]
    registration["callbacks"] = ours.pop("callbacks")
    schemas = document["components"]["schemas"] | _schemas() | ours["components"].pop("schemas")
    # "Resolution" is the word of RocketMQ, for us alone.
    schemas["Decision"] = schemas.pop("Resolution")
    document |= ours
    document["components"]["schemas"] = schemas
    text = msgspec.json.encode(document).replace(b"/schemas/Resolution", b"/schemas/Decision")
    complete: dict[str, Any] = msgspec.json.decode(text)
    _finish_operations(complete["paths"])
    _describe([complete["components"]["schemas"], complete["paths"]])
    _name_values(complete["components"]["schemas"])
    return complete


def operation_id(route: APIRoute) -> str:
    """Return the operation id, in the form of a generated client's method name."""
    first, *rest = route.name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _schemas() -> dict[str, Any]:
    """Return the schemas of the hot routes and of checks."""
    _, found = msgspec.json.schema_components(_STRUCTS, ref_template=_SCHEMAS + "{name}")
    for name in ("PrepareRequest", "MessageRequest"):
        members = found[name]["properties"]
        members.pop("deliver_after")
        for member in members.values():
            if "anyOf" in member:  # JSON Schema counts 7.0 as an integer, the decoder does not
                member["anyOf"] = [each for each in member["anyOf"] if "multipleOf" not in each]
    for name, file in _CHECKS.items():
        text = (CHECKS / f"{file}.schema.json").read_text("utf-8")
        schema = msgspec.json.decode(text.replace("#/$defs/", _SCHEMAS))
        found.update(schema.pop("$defs"))
        found[name] = {word: schema[word] for word in schema if not word.startswith("$")}
    return found


def _finish_operations(paths: dict[str, Any]) -> None:
    facts = msgspec.json.decode((HERE / "operations.json").read_bytes())
    for path, operations in paths.items():
        for operation in operations.values():
            if is_public(path):
                operation["security"] = []
            _finish_operation(operation, "public" if is_public(path) else "keyed", facts)


def _finish_operation(operation: dict[str, Any], kind: str, facts: dict[str, Any]) -> None:
    """Add the problems and the headers of an operation; an absent parameter is not null."""
    name, parameters = operation["operationId"], operation.get("parameters", ())
    about = [name, kind, *operation, *(f"{each['in']} {each['name']}" for each in parameters)]
    codes = {code for each in about for code in facts["problems"].get(each, ())}
    operation["responses"]["default"] = {
        "description": "A problem: " + ", ".join(sorted(codes)),
        "content": {MEDIA_TYPE: {"schema": {"$ref": _SCHEMAS + "ProblemDocument"}}},
    }
    for status, response in operation["responses"].items():
        for key in (status, f"{name} {status}"):
            for header in facts["headers"].get(key, ()):
                response.setdefault("headers", {})[header] = {"$ref": _HEADERS + header}
    for each in parameters:
        each["schema"].update(*[one for one in each["schema"].pop("anyOf", ()) if one != _NULL])
        if each["name"] == "message_id":
            each["schema"] = _MESSAGE_ID


def _describe(node: Any) -> None:
    """Complete each schema below a node."""
    if isinstance(node, dict):
        _complete(node)
    for each in node.values() if isinstance(node, dict) else node:
        if isinstance(each, dict | list):
            _describe(each)


def _complete(schema: dict[str, Any]) -> None:
    """Add what generators ask for: types of enums, sizes of integers, one type of message ids.

    Titles would become names of types.
    """
    if schema.get("type") == "integer":
        wide = schema.get("maximum", _INT32_END) >= _INT32_END
        schema["format"] = "int64" if wide else "int32"
        bounds = {"minimum", "maximum"} & schema.keys()
        schema.update({each: int(schema[each]) for each in bounds})  # the framework's are floats
    if "enum" in schema:
        schema.setdefault("type", "string")
    if isinstance(schema.get("title"), str):
        del schema["title"]
    if schema.get("default", ...) is None:
        del schema["default"]
    members = schema.get("properties", {})
    for name in _IDS & members.keys():
        members[name] = _message_id(members[name])


def _message_id(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of message ids that refers to the one schema of them."""
    if "anyOf" in schema:
        return {"anyOf": [_message_id(each) for each in schema["anyOf"]]}
    if "items" in schema:
        return {**schema, "items": _MESSAGE_ID}
    return schema if schema == _NULL else _MESSAGE_ID


def _name_values(schemas: dict[str, Any]) -> None:
    """Name the values of each enum for languages in which all constants are in one space."""
    for name, schema in schemas.items():
        if values := schema.get("enum"):
            names = [re.sub(r"\W", "_", f"{name}_{value}").upper() for value in values]
            schema["x-enum-varnames"] = names


if __name__ == "__main__":
    main()
