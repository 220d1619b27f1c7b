"""The invariants of every run, and how often each was checked and violated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

INVARIANTS: Final = {
    "I1": "at most one record of a message is visible",
    "I2": "Kafka has nothing that was not committed",
    "I3": "every committed message has its record",
    "I4": "a message has one decision, which never changes",
    "I5": "what was acknowledged is stored",
    "I6": "records of a key are in commit order",
    "I7": "records have the prepared content",
    "I16": "no transaction is left open in Kafka",
    "I17": "the backlog drained",
    "I18": "a refused call left no trace, and each decision was given",
    "I19": "of one decision all messages are committed or none",
}


@dataclass(slots=True)
class Invariant:
    """One invariant's counts, and its first violation."""

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

    def check(self, name: str, holds: bool, what: str, **about: Any) -> None:
        """Count one check; keep the first violation with its details."""
        invariant = self.invariants[name]
        invariant.checked += 1
        if not holds:
            invariant.violations += 1
            invariant.first = invariant.first or {"what": what, **about}

    @property
    def violations(self) -> int:
        """The number of violations of all invariants."""
        return sum(invariant.violations for invariant in self.invariants.values())
