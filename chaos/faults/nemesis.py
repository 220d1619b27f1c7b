"""The interface of a nemesis, which performs one kind of fault and undoes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chaos.faults.run_context import ChaosContext
    from chaos.profiles.schedule import Fault

Facts = dict[str, object]
"""Details of a performed fault, for the history. ``met`` is False for a fault that met nothing, and
``skipped`` says why one was not performed: neither counts."""


class Nemesis(Protocol):
    """Performs faults of some kinds; several may run at once, each in its own thread."""

    kinds: frozenset[str]

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Perform the fault and undo it; blocks for about its seconds and the recovery."""

    def heal(self, context: ChaosContext) -> None:
        """Undo everything that may be left; called once, after the last fault."""
