"""How the text of a setting becomes a list or an object."""

from __future__ import annotations

import json
from typing import Any


def words(value: Any) -> Any:
    """Split comma-separated text into its trimmed, non-empty parts."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def json_object(value: Any) -> Any:
    """Read JSON text that must be an object; raises ValueError otherwise."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except json.JSONDecodeError:
        raise ValueError("is not JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError("is not a JSON object")
    return parsed
