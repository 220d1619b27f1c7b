"""SIGKILL and SIGSTOP: processes of ours die at any instruction, or wake up long after."""

from __future__ import annotations

from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.final_state.probes import comes_true, is_alive
from chaos.programs.children import Child
from chaos.run_context import ChaosContext
from chaos.schedule import Fault

START_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 3.0
OWNED: Final = "SELECT name FROM outbox.progress WHERE name LIKE 'relay:%%' AND owner LIKE %s"


class Kill:
    """Kills a process: at once, soon after it was killed before, or at a failpoint."""

    kinds = frozenset({"kill", "kill_young", "failpoint"})

    def __init__(self) -> None:
        self._looks = 0

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Kill it; the supervisor starts it again."""
        child = world.processes.named(fault.target)
        self._let_work(world, child)
        if fault.kind == "failpoint":
            child.failpoint = str(fault.arg("point", ""))
        pid = self._strike(world, child, fault.kind)
        if fault.kind == "kill_young" and child.wait_started(START_SECONDS):
            world.stop.wait(fault.seconds)
            self._strike(world, child, fault.kind)
        return {"pid": pid}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: whatever was killed comes back by itself."""

    def _let_work(self, world: ChaosContext, child: Child) -> None:
        """Let something get done since the last kill of its kind, also on a slow machine."""
        match child.role:
            case "api":
                comes_true(lambda: is_alive(child.port), PATIENCE_SECONDS, world.stop)
            case "checker":
                recoveries, last = world.recoveries, self._looks
                comes_true(lambda: recoveries.looks > last, PATIENCE_SECONDS, world.stop)
                self._looks = recoveries.looks

    def _strike(self, world: ChaosContext, child: Child, kind: str) -> int | None:
        pid = child.pid
        if pid is not None and child.role == "checker":
            world.recoveries.struck(kind, child.name, owned_shards(world, pid))
        return child.kill(kind)


class Pause:
    """Freezes a process and lets it go on: a zombie that does not know how late it is."""

    kinds = frozenset({"pause"})

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Freeze it for the fault's seconds."""
        child = world.processes.named(fault.target)
        pid = child.pid
        if pid is not None and child.role == "checker":
            world.recoveries.struck(fault.kind, child.name, owned_shards(world, pid))
        child.pause()
        world.stop.wait(fault.seconds)
        child.resume()
        return {"pid": pid, "seconds": fault.seconds}

    def heal(self, world: ChaosContext) -> None:
        """Thaw everything."""
        world.processes.heal()


def owned_shards(world: ChaosContext, pid: int) -> list[int]:
    """Return the shards whose progress a process has stored last; none if PostgreSQL is away."""
    try:
        with psycopg.connect(world.postgres.dsn(), connect_timeout=2) as connection:
            rows = connection.execute(OWNED, [f"%:{pid}"]).fetchall()
    except psycopg.Error:
        return []
    return [int(name.partition(":")[2]) for (name,) in rows]
