"""Kills (SIGKILL) and pauses (SIGSTOP) processes at any instruction."""

from __future__ import annotations

from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault
from chaos.programs.children import Child
from chaos.servers.probes import is_alive, wait_until_true

START_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 3.0
OWNED: Final = "SELECT name FROM outbox.progress WHERE name LIKE 'relay:%%' AND owner LIKE %s"


class Kill:
    """Kills a process: at once, soon after it was killed before, or at a failpoint."""

    kinds = frozenset({"kill", "kill_young", "failpoint"})

    def __init__(self) -> None:
        self._observations = 0

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Kill the process; its supervisor starts it again."""
        child = context.processes.named(fault.target)
        self._wait_for_progress(context, child)
        if fault.kind == "failpoint":
            child.failpoint = str(fault.arg("point", ""))
        pid = self._kill(context, child, fault.kind)
        if fault.kind == "kill_young" and child.wait_started(START_SECONDS):
            context.stop.wait(fault.seconds)
            self._kill(context, child, fault.kind)
        return {"pid": pid}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: killed processes are restarted."""

    def _wait_for_progress(self, context: ChaosContext, child: Child) -> None:
        """Wait for progress since the last such kill, so that a slow machine gets work done."""
        match child.role:
            case "api":
                wait_until_true(lambda: is_alive(child.port), PATIENCE_SECONDS, context.stop)
            case "checker":
                recoveries, last = context.recoveries, self._observations
                wait_until_true(
                    lambda: recoveries.observations > last, PATIENCE_SECONDS, context.stop
                )
                self._observations = recoveries.observations

    def _kill(self, context: ChaosContext, child: Child, kind: str) -> int | None:
        pid = child.pid
        if pid is not None and child.role == "checker":
            context.recoveries.record_fault(kind, child.name, owned_shards(context, pid))
        return child.kill(kind)


class Pause:
    """Pauses a process and resumes it: it continues without knowing how late it is."""

    kinds = frozenset({"pause"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Pause it for the fault's seconds."""
        child = context.processes.named(fault.target)
        pid = child.pid
        if pid is not None and child.role == "checker":
            context.recoveries.record_fault(fault.kind, child.name, owned_shards(context, pid))
        child.pause()
        context.stop.wait(fault.seconds)
        child.resume()
        return {"pid": pid, "seconds": fault.seconds}

    def heal(self, context: ChaosContext) -> None:
        """Resume every process."""
        context.processes.heal()


def owned_shards(context: ChaosContext, pid: int) -> list[int]:
    """Return the shards whose progress a process stored last; none without PostgreSQL."""
    try:
        with psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection:
            rows = connection.execute(OWNED, [f"%:{pid}"]).fetchall()
    except psycopg.Error:
        return []
    return [int(name.partition(":")[2]) for (name,) in rows]
