"""Restores PostgreSQL from an older copy: it loses its newest commits and issues xids again.

``restore`` copies the stopped server; ``restore_backup`` takes a base backup of the running one.
"""

from __future__ import annotations

import shutil
import threading
from itertools import count
from time import monotonic

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.history.recovery import ALL_SHARDS
from chaos.profiles.schedule import Fault
from chaos.servers.lost_tails import (
    Contents,
    contents_of_stopped,
    lost_tail,
    wait_every_shard_has_a_cursor,
    write_tail,
)
from chaos.servers.nodes import PostgresNode
from chaos.servers.postgres_copies import copy_running, copy_stopped, exchange


class Restore:
    """Takes a copy, lets the load continue for the fault's seconds, and restores the copy."""

    kinds = frozenset({"restore", "restore_backup"})

    def __init__(self) -> None:
        self._numbers = count(1)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Perform the restore; the facts name the file with the lost messages."""
        with context.postgres_alone:
            if not wait_every_shard_has_a_cursor(context.postgres):
                return {"skipped": "not every shard has a cursor"}
            home = context.postgres.server.home / f"copy-{next(self._numbers)}"
            copy = PostgresNode(home, context.server_thread)
            try:
                return self._perform(context, fault, copy)
            finally:
                shutil.rmtree(copy.server.home, ignore_errors=True)

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the server runs on its copy."""

    def _perform(self, context: ChaosContext, fault: Fault, copy: PostgresNode) -> Facts:
        stopped_seconds = self._take(context, fault.kind, copy)
        went_on = monotonic()
        after = contents_of_stopped(copy, context.server_thread)
        threading.Event().wait(max(0.0, went_on + fault.seconds - monotonic()))
        began = monotonic()
        context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
        context.postgres.stop_immediate()
        exchange(context.postgres, copy)
        context.postgres.start()
        back = monotonic()
        return {
            **self._facts(context, copy, after),
            "copy_seconds": round(stopped_seconds, 3),
            "lost_seconds": round(began - went_on, 3),
            "down_seconds": round(back - began, 3),
        }

    def _take(self, context: ChaosContext, kind: str, copy: PostgresNode) -> float:
        began = monotonic()
        if kind == "restore_backup":
            copy_running(context.postgres, copy)
            return monotonic() - began
        context.postgres.stop_immediate()
        try:
            copy_stopped(context.postgres, copy)
        finally:
            context.postgres.start()
        return monotonic() - began

    def _facts(self, context: ChaosContext, old: PostgresNode, after: Contents) -> Facts:
        tail = lost_tail(contents_of_stopped(old, context.server_thread), after)
        halves = sum(1 for row in tail if row["half_lost"])
        decisions = sum(1 for row in tail if row["op"] is not None)
        return {
            "file": write_tail(context.dir, tail),
            "halves_lost": halves,
            "decisions_lost": decisions,
            "met": bool(tail),
        }
