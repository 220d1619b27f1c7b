"""The OpenAPI document: the framework's routes, and the hot routes from their msgspec structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from api.app import operation_id
from api.guard import is_public
from api.http.problems import KINDS, MEDIA_TYPE, ProblemDocument
from api.ingest.hot_routes import PREFIX
from api.ingest.schemas import (
    EndBatch,
    EndBatchAnswer,
    EndRequest,
    PrepareBatch,
    PrepareBatchAnswer,
)

TITLE: Final = "Transactional outbox for Kafka with half messages"
DESCRIPTION: Final = (
    "Prepare a half message, run your local transaction, end it: COMMIT makes it exactly one"
    " record in its Kafka topic, ROLLBACK discards it. If no end arrives, the producer is asked."
)
PROBLEM_REF: Final = "#/components/schemas/ProblemDocument"
_REF: Final = "#/components/schemas/{name}"
_STRUCTS: Final = (PrepareBatch, EndRequest, EndBatch, PrepareBatchAnswer, EndBatchAnswer)
"""They refer to all the others."""
_PREPARE_EXAMPLE: Final = {
    "producer_group": "billing",
    "topic": "invoices.issued",
    "key": "cust-58",
    "value": '{"invoice":7731,"total":100}',
    "headers": {"tenant": "north"},
    "transaction_id": "invoice-7731",
}
FOLLOWING: Final = ("end", "getHalfMessage", "getHistory", "recheck", "forceEnd")
"""The operations on a prepared message, by operation id."""
_ID: Final = "000000002a3f-8001-8e10-9a54-6f2b7c1d9e10"


def openapi_document(routers: Sequence[APIRouter], version: str) -> dict[str, Any]:
    """Return the contract of all routes: those of the routers, and the hot ones."""
    app = FastAPI(openapi_url=None, generate_unique_id_function=operation_id)
    for router in routers:
        app.include_router(router)
    document = get_openapi(
        title=TITLE,
        version=version,
        description=DESCRIPTION,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    _, hot_schemas = msgspec.json.schema_components(_STRUCTS, ref_template=_REF)
    members = hot_schemas["PrepareRequest"]["properties"]
    members.pop("deliver_after")
    _name_integers(members)
    schemas.update(hot_schemas)
    schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in _hot_paths().items():
        document["paths"].setdefault(path, {}).update(operations)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _finish(operation)
            if is_public(path):
                operation["security"] = []
    document["security"] = [{"key": []}]
    return document


def _name_integers(members: dict[str, Any]) -> None:
    """Describe a number as an integer: JSON Schema counts 7.0 as one, the decoder does not."""
    for member in members.values():
        if "anyOf" in member:
            member["anyOf"] = [each for each in member["anyOf"] if "multipleOf" not in each]


def _finish(operation: dict[str, Any]) -> None:
    """Replace the framework's error responses of an operation by the problem document."""
    responses = operation["responses"]
    responses.pop("422", None)
    responses["default"] = {
        "description": "A problem: " + ", ".join(sorted(KINDS)),
        "content": {MEDIA_TYPE: {"schema": {"$ref": PROBLEM_REF}}},
    }


def _hot_paths() -> dict[str, dict[str, Any]]:
    prefer = _header("Prefer", "`wait=N`: wait up to N seconds (at most 30) for Kafka.", "wait=5")
    idempotency = _header("Idempotency-Key", "An alias of `transaction_id`.", '"invoice-7731"')
    traceparent = _header(
        "traceparent",
        "W3C trace context; that of a prepare is sent with the record.",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    message_id = {
        "name": "message_id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "format": "uuid"},
    }
    end_example = {"decision": "COMMIT", "reason": "invoice 7731 exists"}
    prepared = _operation(
        "prepare",
        "Store a half message durably; no consumer can read it yet.",
        ("PrepareRequest", _PREPARE_EXAMPLE),
        ("201", "Durable", "PreparedHalf"),
        [idempotency, traceparent],
    )
    found = {"message_id": "$response.body#/message_id"}
    prepared["post"]["responses"]["201"]["links"] = {
        name: {"operationId": name, "parameters": found} for name in FOLLOWING
    }
    return {
        PREFIX: prepared,
        f"{PREFIX}/batch": _operation(
            "prepareBatch",
            "Store up to 1000 half messages, each with its own result.",
            ("PrepareBatch", {"items": [_PREPARE_EXAMPLE]}),
            ("207", "One result per item", "PrepareBatchAnswer"),
            [traceparent],
        ),
        f"{PREFIX}/{{message_id}}/end": _operation(
            "end",
            "Decide a half message; the first decision is final.",
            ("EndRequest", end_example),
            ("200", "The final decision", "EndedHalf"),
            [message_id, prefer, traceparent],
        ),
        f"{PREFIX}/end-batch": _operation(
            "endBatch",
            "Decide up to 1000 half messages, each with its own result.",
            ("EndBatch", {"items": [{"message_id": _ID, **end_example}]}),
            ("207", "One result per item", "EndBatchAnswer"),
            [prefer, traceparent],
        ),
    }


def _operation(
    name: str,
    summary: str,
    asked: tuple[str, dict[str, Any]],
    answered: tuple[str, str, str],
    parameters: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return a POST: ``asked`` is a schema and an example, ``answered`` status, words, schema."""
    schema, example = asked
    status, description, answer = answered
    body = {"schema": {"$ref": _REF.format(name=schema)}, "example": example}
    content = {"application/json": {"schema": {"$ref": _REF.format(name=answer)}}}
    operation = {
        "operationId": name,
        "summary": summary,
        "tags": ["half messages"],
        "parameters": parameters,
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {status: {"description": description, "content": content}},
    }
    return {"post": operation}


def _header(name: str, description: str, example: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
        "example": example,
    }
