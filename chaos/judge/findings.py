"""What each invariant found: how much it looked at, and how often it did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

INVARIANTS: Final = {
    "I1": "at most one record of a message is visible",
    "I2": "nothing is in Kafka that was not committed",
    "I3": "every committed message has its record",
    "I4": "a message has one decision, for ever",
    "I5": "what was acknowledged is there",
    "I6": "records of a key are in the order of their commits",
    "I7": "records have the content that was prepared",
    "I8": "records and manifests name each other",
    "I9": "the manifests of a shard are one chain",
    "I10": "the cursor passed nothing that no manifest lists",
    "I11": "a commit is listed once, in its own transaction",
    "I12": "checks are neither early nor late nor too many",
    "I13": "only a verdict decides",
    "I14": "a verdict counts only for the message that was asked about",
    "I15": "no half was retired before its time",
    "I16": "no transaction is left open in Kafka",
    "I17": "the backlog drained",
    "I18": "what was refused left no trace",
    "G7": "no check decided against the local transaction",
    "poll": "live readers were given each record once, in order",
}


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
