"""What each invariant found: how much it looked at, and how often it did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.judge.invariants import INVARIANTS


@dataclass(slots=True)
class Invariant:
    """One invariant's counts."""

    checked: int = 0
    violations: int = 0
    first: dict[str, Any] | None = None


@dataclass(slots=True)
class Findings:
    """All of them; ``excused`` counts what a lost tail of PostgreSQL accounts for."""

    invariants: dict[str, Invariant] = field(
        default_factory=lambda: {name: Invariant() for name in INVARIANTS}
    )
    excused: int = 0

    def check(self, name: str, holds: bool, what: str, **about: Any) -> None:
        """Count one look; note the first that does not hold, with what it is about."""
        invariant = self.invariants[name]
        invariant.checked += 1
        if not holds:
            invariant.violations += 1
            if invariant.first is None:
                invariant.first = {"what": what, **about}

    @property
    def violations(self) -> int:
        """How often any invariant did not hold."""
        return sum(invariant.violations for invariant in self.invariants.values())
