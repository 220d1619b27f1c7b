"""The JSON Schema of a report."""

from __future__ import annotations

import json
from typing import Any

from tests.fixtures_paths import PROJECT

SCHEMA: dict[str, Any] = json.loads(
    (PROJECT / "docs" / "schemas" / "reconciliation.schema.json").read_text("utf-8")
)
