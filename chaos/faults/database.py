"""Stops PostgreSQL hard, kills a backend, or leaves a transaction open."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault
from chaos.servers.probes import wait_until_true

LOOK_SECONDS: Final = 0.05
BACK_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 5.0
ALL_SHARDS: Final = range(16)
BACKENDS: Final = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    " AND pid <> pg_backend_pid() ORDER BY pid"
)


class PostgresStop:
    """Stops PostgreSQL at once, without a shutdown, and starts it again."""

    kinds = frozenset({"postgres_stop"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Keep it stopped for the fault's seconds."""
        with context.postgres_alone:
            began = monotonic()
            context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
            context.postgres.stop_immediate()
            context.stop.wait(fault.seconds)
            context.postgres.start()
            return {"down_seconds": round(monotonic() - began, 3)}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: PostgreSQL is running again."""


class BackendKill:
    """Kills one backend (SIGKILL): PostgreSQL ends all sessions and recovers."""

    kinds = frozenset({"backend_kill"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Kill a backend of one of the programs and wait until PostgreSQL accepts connections."""
        began, dsn = monotonic(), context.postgres.dsn()
        with context.postgres_alone:
            with psycopg.connect(dsn, autocommit=True) as connection:
                pids: list[int] = []

                def connected() -> bool:
                    pids[:] = [pid for (pid,) in connection.execute(BACKENDS)]
                    return bool(pids)

                if not wait_until_true(connected, CONNECT_SECONDS, context.stop):
                    return {"skipped": "no program is connected"}
                pid = context.random(f"backend/{fault.at}").choice(pids)
                context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
                os.kill(pid, signal.SIGKILL)
            _wait_accepting(dsn)
        return {"pid": pid, "seconds": round(monotonic() - began, 3)}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: PostgreSQL has recovered."""


class LongTransaction:
    """Leaves a transaction with an xid open, which stops the watermark."""

    kinds = frozenset({"long_transaction"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Hold it open for the fault's seconds; a crash of PostgreSQL may end it earlier."""
        with suppress(psycopg.Error), psycopg.connect(context.postgres.dsn()) as connection:
            connection.execute("SELECT pg_current_xact_id()")
            context.stop.wait(fault.seconds)
            connection.rollback()
        return {"seconds": fault.seconds}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the session is closed."""


def _wait_accepting(dsn: str) -> None:
    pause, deadline = threading.Event(), monotonic() + BACK_SECONDS
    while monotonic() < deadline:
        with suppress(psycopg.OperationalError), psycopg.connect(dsn, connect_timeout=2):
            return
        pause.wait(LOOK_SECONDS)
    raise TimeoutError("PostgreSQL does not come back")
