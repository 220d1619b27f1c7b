"""Parsers of settings: text to a list or an object."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import SecretStr

SHORTEST_PEPPER: Final = 16


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


def long_enough(secret: SecretStr) -> SecretStr:
    """Return a secret that is too long to be guessed; raises ValueError for a shorter one."""
    if len(secret.get_secret_value()) < SHORTEST_PEPPER:
        example = "for example the output of `openssl rand -base64 32`"
        raise ValueError(f"needs at least {SHORTEST_PEPPER} characters: {example}")
    return secret
