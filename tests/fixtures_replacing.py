"""Changed copies of values, whichever of the two kinds of frozen classes they have."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

from msgspec import Struct, structs

Value = TypeVar("Value")


def replace(value: Value, /, **fields: Any) -> Value:
    """Return a copy of a dataclass or a struct with some fields changed."""
    if isinstance(value, Struct):
        return cast(Value, structs.replace(value, **fields))
    return cast(Value, dataclasses.replace(cast(Any, value), **fields))
