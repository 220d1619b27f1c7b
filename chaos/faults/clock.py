"""An API or a checker that has the wrong time: only PostgreSQL's clock may decide (F13)."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Final

from chaos.faults.nemesis import Facts
from chaos.faults.processes import owned_shards
from chaos.final_state.probes import comes_true
from chaos.programs.children import Child
from chaos.programs.false_clock import has_false_clock, time_told, under_clock
from chaos.run_context import ChaosContext
from chaos.schedule import Fault

BEGIN_SECONDS: Final = 20.0
"""A life under a false clock imports everything anew."""


class Clock:
    """Kills a program and lets it live under a false clock for a while; argument ``clock``."""

    kinds = frozenset({"clock"})

    def __init__(self) -> None:
        self._alone: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Do so for the fault's seconds from when it works; without libfaketime NoFalseClock."""
        child, clock = world.processes.named(fault.target), str(fault.arg("clock", "+3d"))
        with self._alone[child.name]:
            self._struck(world, child)
            with under_clock(child, clock):
                begun = comes_true(lambda: _works(world, child), BEGIN_SECONDS, world.stop)
                world.stop.wait(fault.seconds)
                told = time_told(child.port) if child.port else None
            self._struck(world, child)
        return {"clock": clock, "begun": begun, "told": told and told.isoformat()}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the next life has the true clock."""

    def _struck(self, world: ChaosContext, child: Child) -> None:
        if child.pid is not None and child.role == "checker":
            world.recoveries.struck("clock", child.name, owned_shards(world, child.pid))


def _works(world: ChaosContext, child: Child) -> bool:
    """Tell whether a life with a false clock answers, or has stored progress of a shard."""
    pid = child.pid
    if pid is None or not has_false_clock(pid):
        return False
    return time_told(child.port) is not None if child.port else bool(owned_shards(world, pid))
