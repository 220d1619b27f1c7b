"""What breaks a run: a nemesis performs one kind of fault and undoes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chaos.run_context import ChaosContext
    from chaos.schedule import Fault

Facts = dict[str, object]
"""What a nemesis tells the history about a fault that it performed."""


class Nemesis(Protocol):
    """Performs faults of some kinds; several may run at once, each in a thread of its own."""

    kinds: frozenset[str]

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Perform the fault and undo it; block at most for about its seconds and the recovery."""

    def heal(self, world: ChaosContext) -> None:
        """Undo whatever may be left; called once, when no more faults are performed."""
