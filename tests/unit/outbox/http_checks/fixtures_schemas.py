"""Validators of the published JSON Schemas."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.fixtures_paths import PROJECT

SCHEMAS = PROJECT / "docs" / "schemas"


def validator(name: str) -> Draft202012Validator:
    """Return the validator of a schema, which is itself valid."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
