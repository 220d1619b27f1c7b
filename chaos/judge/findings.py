"""The counts of each invariant: how often it was checked, and how often it was violated."""

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
    """The counts of all invariants; ``excused`` counts what a lost tail of PostgreSQL explains."""

    invariants: dict[str, Invariant] = field(
        default_factory=lambda: {name: Invariant() for name in INVARIANTS}
    )
    excused: int = 0
    unproven: list[str] = field(default_factory=list)
    """what the files do not show, so that the run proves nothing"""

    def check(self, name: str, holds: bool, what: str, **about: Any) -> None:
        """Count one check; keep the first violation with its details."""
        invariant = self.invariants[name]
        invariant.checked += 1
        if not holds:
            invariant.violations += 1
            if invariant.first is None:
                invariant.first = {"what": what, **about}

    @property
    def violations(self) -> int:
        """The number of violations of all invariants."""
        return sum(invariant.violations for invariant in self.invariants.values())
