"""Writes docs/reference/settings.md from the code, so that the two cannot differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from outbox.settings.catalogue import Settings

WRITTEN: Final = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
HEAD: Final = """# Settings

Each is an environment variable `OUTBOX_` + name, or the same name without the prefix in the TOML
file that `OUTBOX_CONFIG_FILE` names. A flag wins over the environment, the environment over the
file. A secret, marked (s), may come from a file instead: `OUTBOX_<NAME>_FILE`. An unknown
`OUTBOX_` key stops the start with exit code 2. `outbox config show` prints each value and where it
comes from.

Required are `DATABASE_URL` and `KAFKA_BOOTSTRAP_SERVERS` for every program, `AUTH_PEPPER` for the
API, and `ENCRYPTION_KEYS` for the API and the checker.

PostgreSQL's own variables, such as `PGPASSFILE` or `PGSSLROOTCERT`, give what an address leaves
out. `PGOPTIONS`, `PGTZ`, `PGDATESTYLE`, `PGCLIENTENCODING`, `PGAPPNAME` and `PGCONNECT_TIMEOUT`
have no effect: our sessions set these themselves. `outbox dev`, the commands that find its stores,
and `make demo` use nothing that is set for other servers: `PG*`, `KAFKA_*`, `SPARK_*`,
`PYSPARK_*`, `CLASSPATH`, `JAVA_TOOL_OPTIONS`, `PYTHONPATH`.

| name (`OUTBOX_` +) | default | range | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Return docs/reference/settings.md."""
    return HEAD + "".join(_row(name, field) for name, field in Settings.model_fields.items())


def _row(name: str, field: FieldInfo) -> str:
    return f"| `{name.upper()}` | {_default(field)} | {_range(field)} | {field.description} |\n"


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined:
        return "–"
    if isinstance(value, tuple):
        value = ",".join(value)
    text = json.dumps(value) if isinstance(value, (bool, dict)) else str(value)
    return f"`{text}`" if text else "empty"


def _range(field: FieldInfo) -> str:
    bounds: dict[str, object] = {}
    for rule in field.metadata:
        if isinstance(rule, Ge):
            bounds["from"] = rule.ge
        elif isinstance(rule, Le):
            bounds["to"] = rule.le
        elif isinstance(rule, MinLen):
            bounds["from"] = f"{rule.min_length} characters"
        elif isinstance(rule, MaxLen):
            bounds["to"] = f"{rule.max_length}"
    return " ".join(f"{word} {value}" for word, value in bounds.items()) or "–"


if __name__ == "__main__":
    WRITTEN.write_text(page(), "utf-8")
