"""PostgreSQL dies hard, a backend is shot, a transaction is left open."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.final_state.probes import comes_true
from chaos.run_context import ChaosContext
from chaos.schedule import Fault

LOOK_SECONDS: Final = 0.05
BACK_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 5.0
ALL_SHARDS: Final = range(16)
BACKENDS: Final = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    " AND pid <> pg_backend_pid() ORDER BY pid"
)


class PostgresStop:
    """Stops PostgreSQL at once, as a power cut of its processes, and starts it again."""

    kinds = frozenset({"postgres_stop"})

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Stop it for the fault's seconds."""
        with world.postgres_alone:
            began = monotonic()
            world.recoveries.struck(fault.kind, fault.target, ALL_SHARDS)
            world.postgres.stop_immediate()
            world.stop.wait(fault.seconds)
            world.postgres.start()
            return {"down_seconds": round(monotonic() - began, 3)}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: it has been started again."""


class BackendKill:
    """Kills one backend (SIGKILL): PostgreSQL ends all sessions and recovers."""

    kinds = frozenset({"backend_kill"})

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Kill a backend of one of our programs and wait until PostgreSQL accepts connections."""
        began, dsn = monotonic(), world.postgres.dsn()
        with world.postgres_alone:
            with psycopg.connect(dsn, autocommit=True) as connection:
                pids: list[int] = []

                def connected() -> bool:
                    pids[:] = [pid for (pid,) in connection.execute(BACKENDS)]
                    return bool(pids)

                if not comes_true(connected, CONNECT_SECONDS, world.stop):
                    return {"skipped": "none of our programs is connected"}
                pid = world.random(f"backend/{fault.at}").choice(pids)
                world.recoveries.struck(fault.kind, fault.target, ALL_SHARDS)
                os.kill(pid, signal.SIGKILL)
            _wait_accepting(dsn)
        return {"pid": pid, "seconds": round(monotonic() - began, 3)}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left."""


class LongTransaction:
    """Leaves a transaction open that has taken an xid: the watermark stands still."""

    kinds = frozenset({"long_transaction"})

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Hold one open for the fault's seconds; a crash of PostgreSQL may end it earlier."""
        with suppress(psycopg.Error), psycopg.connect(world.postgres.dsn()) as connection:
            connection.execute("SELECT pg_current_xact_id()")
            world.stop.wait(fault.seconds)
            connection.rollback()
        return {"seconds": fault.seconds}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the session is closed."""


def _wait_accepting(dsn: str) -> None:
    pause, deadline = threading.Event(), monotonic() + BACK_SECONDS
    while monotonic() < deadline:
        with suppress(psycopg.OperationalError), psycopg.connect(dsn, connect_timeout=2):
            return
        pause.wait(LOOK_SECONDS)
    raise TimeoutError("PostgreSQL does not come back")
