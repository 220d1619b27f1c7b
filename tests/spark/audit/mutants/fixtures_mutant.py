"""A mutant: a rule of the reconciliation in its correct and in a broken form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import ModuleType
from typing import Any


class Needs(StrEnum):
    """What the test that kills a mutant needs."""

    NOTHING = "pure"
    SPARK = "frames"
    STORES = "stores"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One replaced rule; ``given`` are arguments of the killer that no fixture provides."""

    name: str
    module: ModuleType
    rule: str
    broken: str
    killer: Callable[..., None]
    needs: Needs = Needs.NOTHING
    given: Mapping[str, Any] = field(default_factory=dict)
