"""PostgreSQL is put back to an older copy: it forgets its tail, and xids are issued again.

``restore`` takes a copy of the stopped server, ``restore_backup`` a base backup of a running one.
"""

from __future__ import annotations

import shutil
import threading
from itertools import count
from time import monotonic
from typing import Final

from chaos.faults.nemesis import Facts
from chaos.run_context import ChaosContext
from chaos.schedule import Fault
from chaos.servers.lost_tails import (
    Contents,
    contents_of_stopped,
    lost_tail,
    may_lose_its_tail,
    write_tail,
)
from chaos.servers.nodes import PostgresNode
from chaos.servers.postgres_copies import copy_running, copy_stopped, exchange

ALL_SHARDS: Final = range(16)


class Restore:
    """Takes a copy, lets the load go on for the fault's seconds, puts the copy back."""

    kinds = frozenset({"restore", "restore_backup"})

    def __init__(self) -> None:
        self._numbers = count(1)

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Perform it; the facts name the file that lists what was lost."""
        with world.postgres_alone:
            if not may_lose_its_tail(world):
                return {"skipped": "not every shard has begun"}
            home = world.postgres.server.home / f"copy-{next(self._numbers)}"
            copy = PostgresNode(home, world.keeper)
            try:
                return self._perform(world, fault, copy)
            finally:
                shutil.rmtree(copy.server.home, ignore_errors=True)

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the server runs on its copy."""

    def _perform(self, world: ChaosContext, fault: Fault, copy: PostgresNode) -> Facts:
        stopped_seconds = self._take(world, fault.kind, copy)
        went_on = monotonic()
        after = contents_of_stopped(copy, world.keeper)
        threading.Event().wait(max(0.0, went_on + fault.seconds - monotonic()))
        began = monotonic()
        world.recoveries.struck(fault.kind, fault.target, ALL_SHARDS)
        world.postgres.stop_immediate()
        exchange(world.postgres, copy)
        world.postgres.start()
        back = monotonic()
        return {
            **self._tell(world, copy, after),
            "copy_seconds": round(stopped_seconds, 3),
            "lost_seconds": round(began - went_on, 3),
            "down_seconds": round(back - began, 3),
        }

    def _take(self, world: ChaosContext, kind: str, copy: PostgresNode) -> float:
        began = monotonic()
        if kind == "restore_backup":
            copy_running(world.postgres, copy)
            return monotonic() - began
        world.postgres.stop_immediate()
        try:
            copy_stopped(world.postgres, copy)
        finally:
            world.postgres.start()
        return monotonic() - began

    def _tell(self, world: ChaosContext, old: PostgresNode, after: Contents) -> Facts:
        tail = lost_tail(contents_of_stopped(old, world.keeper), after)
        halves = sum(1 for row in tail if row["half_lost"])
        decisions = sum(1 for row in tail if row["op"] is not None)
        return {
            "file": write_tail(world.dir, tail),
            "halves_lost": halves,
            "decisions_lost": decisions,
        }
