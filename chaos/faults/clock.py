"""Gives an API or a checker the wrong time: only PostgreSQL's clock may decide (F13)."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Final

from chaos.faults.nemesis import Facts
from chaos.faults.processes import owned_shards
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault
from chaos.programs.children import Child
from chaos.programs.false_clock import api_time, has_false_clock, under_clock
from chaos.servers.probes import wait_until_true

BEGIN_SECONDS: Final = 20.0
"""A life under a false clock imports every module again."""


class FalseClock:
    """Kills a program and restarts it under a false clock for a while; argument ``clock``."""

    kinds = frozenset({"clock"})

    def __init__(self) -> None:
        self._alone: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Keep the false clock for the fault's seconds, counted from when the program works.

        Raises NoFalseClock without libfaketime.
        """
        child, clock = context.processes.named(fault.target), str(fault.arg("clock", "+3d"))
        with self._alone[child.name]:
            self._record_fault(context, child)
            with under_clock(child, clock):
                works = wait_until_true(lambda: _works(context, child), BEGIN_SECONDS, context.stop)
                context.stop.wait(fault.seconds)
                shown = api_time(child.port) if child.port else None
            self._record_fault(context, child)
        return {"clock": clock, "met": works, "told": shown and shown.isoformat()}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the next life has the true clock."""

    def _record_fault(self, context: ChaosContext, child: Child) -> None:
        if child.pid is not None and child.role == "checker":
            context.recoveries.record_fault("clock", child.name, owned_shards(context, child.pid))


def _works(context: ChaosContext, child: Child) -> bool:
    """Return whether a life with a false clock answers or has stored the progress of a shard."""
    pid = child.pid
    if pid is None or not has_false_clock(pid):
        return False
    return api_time(child.port) is not None if child.port else bool(owned_shards(context, pid))
