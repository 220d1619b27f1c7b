"""Kills (SIGKILL) and pauses (SIGSTOP) processes at any instruction."""

from __future__ import annotations

import threading
from collections import defaultdict
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.history.process_ends import IDLE
from chaos.profiles.schedule import Fault
from chaos.programs.children import Child
from chaos.servers.probes import wait_until_true

START_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 20.0
SPARED_SECONDS: Final = 4.0
"""How long a life with a failpoint is left to meet it."""
LOOK_SECONDS: Final = 0.2
NEWEST: Final = "SELECT coalesce(max(half_id), 0) FROM outbox.half_message"
OWNED: Final = "SELECT name FROM outbox.progress WHERE name LIKE 'relay:%%' AND owner LIKE %s"


class Kill:
    """Kills a process: at once, soon after it was killed before, or at a failpoint."""

    kinds = frozenset({"kill", "kill_young", "failpoint"})

    def __init__(self) -> None:
        self._observations = 0
        self._newest = 0
        self._spared: defaultdict[str, float] = defaultdict(float)
        self._waiting: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Kill the process; its supervisor starts it again.

        A failpoint is armed for the next life, and counts when that life dies at it.
        """
        child = context.processes.named(fault.target)
        if monotonic() < self._spared[child.name]:
            return {"skipped": "this life may still die at its failpoint"}
        waiting = self._waiting[child.role]
        if not waiting.acquire(blocking=False):
            return {"skipped": "another kill waits for the work after the last one"}
        try:
            worked = self._has_worked(context, child)
        finally:
            waiting.release()
        if fault.kind == "failpoint":
            child.failpoint = str(fault.arg("point", ""))
            self._spared[child.name] = monotonic() + SPARED_SECONDS
        kind = "kill" if fault.kind == "failpoint" else fault.kind
        pid = self._kill(context, child, kind, kind if worked else IDLE)
        if fault.kind == "kill_young" and child.wait_started(START_SECONDS):
            context.stop.wait(fault.seconds)
            self._kill(context, child, kind, kind)
        return {"pid": pid, "worked": worked}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: killed processes are restarted."""

    def _has_worked(self, context: ChaosContext, child: Child) -> bool:
        """Wait for work since the last such kill; return whether there was any.

        The kill of a program that did nothing counts as none.
        """
        match child.role:
            case "api":
                last = self._newest
                worked = wait_until_true(
                    lambda: newest_half(context) > last,
                    PATIENCE_SECONDS,
                    context.stop,
                    LOOK_SECONDS,
                )
                self._newest = newest_half(context)
            case "checker":
                recoveries, last = context.recoveries, self._observations
                worked = wait_until_true(
                    lambda: recoveries.observations > last, PATIENCE_SECONDS, context.stop
                )
                self._observations = recoveries.observations
            case _:
                worked = True
        return worked

    def _kill(self, context: ChaosContext, child: Child, kind: str, why: str) -> int | None:
        """Kill the process; its recovery is that of ``kind``, its end is counted as ``why``."""
        pid = child.pid
        if pid is not None and child.role == "checker":
            context.recoveries.record_fault(kind, child.name, owned_shards(context, pid))
        return child.kill(why)


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
        return {"pid": pid, "seconds": fault.seconds, "met": pid is not None}

    def heal(self, context: ChaosContext) -> None:
        """Resume every process."""
        context.processes.heal()


def newest_half(context: ChaosContext) -> int:
    """Return the highest id of a stored half: a higher one shows that an API has worked; or 0."""
    try:
        with psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection:
            row = connection.execute(NEWEST).fetchone()
    except psycopg.Error:
        return 0
    return int(row[0]) if row else 0


def owned_shards(context: ChaosContext, pid: int) -> list[int]:
    """Return the shards whose progress a process stored last; none without PostgreSQL."""
    try:
        with psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection:
            rows = connection.execute(OWNED, [f"%:{pid}"]).fetchall()
    except psycopg.Error:
        return []
    return [int(name.partition(":")[2]) for (name,) in rows]
