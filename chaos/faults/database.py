"""Stops PostgreSQL hard, kills a backend, leaves a transaction open, or claims another database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.history.recovery import ALL_SHARDS
from chaos.profiles.schedule import Fault
from chaos.servers.probes import wait_until_true
from devservers.child import CLEAN_ENVIRONMENT

LOOK_SECONDS: Final = 0.05
BACK_SECONDS: Final = 300.0
"""Nothing is measured here: this ends only a run whose PostgreSQL never comes back."""
CONNECT_SECONDS: Final = 5.0
COMMAND: Final = Path(sys.executable).parent / "outbox"
HALT_LOOK_SECONDS: Final = 3.0
OWNER_SECONDS: Final = 15.0
"""How long a new owner has to find another identity: a busy machine starts it in seconds."""
COMMAND_SECONDS: Final = 180.0
"""Longer than a pause (60 s) of the relay whose transaction the command may have to wait for."""
LIVE_SECONDS: Final = 900.0
"""Ends only a run that would wait for ever; how fast a halt begins and ends is not measured."""
HALT: Final = "SELECT halt_reason FROM outbox.progress WHERE name = %s"
CHANGE: Final = (
    "UPDATE outbox.progress SET pg_system_id = 'another' WHERE name = %s"
    " AND pg_system_id IS NOT NULL RETURNING name"
)
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
            began, met = monotonic(), context.postgres.server.exit_code() is None
            context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
            context.postgres.stop_immediate()
            context.stop.wait(fault.seconds)
            context.postgres.start()
            return {"down_seconds": round(monotonic() - began, 3), "met": met}

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
        return {"pid": pid, "seconds": round(monotonic() - began, 3), "met": True}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: PostgreSQL has recovered."""


class LongTransaction:
    """Leaves a transaction with an xid open, which stops the watermark."""

    kinds = frozenset({"long_transaction"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Hold it open for the fault's seconds; a crash of PostgreSQL may end it earlier."""
        met = False
        with suppress(psycopg.Error), psycopg.connect(context.postgres.dsn()) as connection:
            connection.execute("SELECT pg_current_xact_id()")
            met = True
            context.stop.wait(fault.seconds)
            connection.rollback()
        return {"seconds": fault.seconds, "met": met}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the session is closed."""


class OtherDatabase:
    """Lets a shard's stored identity name another PostgreSQL, as after a restore elsewhere.

    The next owner halts the shard; an operator accepts with ``outbox shard resolve``.
    """

    kinds = frozenset({"other_database"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Halt one shard that has messages, wait for the fault's seconds, and resolve it."""
        shard = context.random(f"shard/{fault.at}").choice(context.used_shards)
        seconds = _until(_Halt(context, shard).happened, f"shard {shard} to halt")
        context.stop.wait(fault.seconds)
        _until(lambda: _resolved(context, shard), f"shard {shard} to be resolved")
        return {"shard": shard, "halt_seconds": round(seconds, 3), "met": True}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: a fault resolves its halt, also after the run's last fault."""


class _Halt:
    """The halt of one shard, which its next owner causes."""

    def __init__(self, context: ChaosContext, shard: int) -> None:
        self._context, self._shard, self._next_kill = context, shard, 0.0

    def happened(self) -> bool:
        """Change the identity, and kill the owners from time to time, until the shard halts."""
        if _ask(self._context, HALT, self._shard):
            return True
        _ask(self._context, CHANGE, self._shard)
        if monotonic() >= self._next_kill:
            self._next_kill = monotonic() + OWNER_SECONDS
            for child in self._context.processes.of("checker"):
                child.kill()
        return False


def _resolved(context: ChaosContext, shard: int) -> bool:
    """Run the operator's command; return whether the shard is not halted any more."""
    command = [str(COMMAND), "shard", "resolve", str(shard), "--accept", "--reason", "chaos"]
    environment = {
        **CLEAN_ENVIRONMENT,
        "OUTBOX_DATABASE_URL": context.postgres.dsn(),
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": context.bootstrap,
    }
    subprocess.run(
        command, env=environment, capture_output=True, timeout=COMMAND_SECONDS, check=False
    )
    return not _ask(context, HALT, shard)


def _ask(context: ChaosContext, query: str, shard: int) -> object:
    """Return the first value of a query about a shard's progress."""
    with psycopg.connect(context.postgres.dsn(), autocommit=True, connect_timeout=2) as connection:
        row = connection.execute(query.encode(), [f"relay:{shard}"]).fetchone()
    return row[0] if row else None


def _until(happened: Callable[[], bool], what: str) -> float:
    """Try until something has happened, also after the last fault; return the seconds.

    Raises TimeoutError.
    """
    pause, began = threading.Event(), monotonic()
    while (waited := monotonic() - began) < LIVE_SECONDS:
        with suppress(psycopg.Error, subprocess.TimeoutExpired):
            if happened():
                return waited
        pause.wait(HALT_LOOK_SECONDS)
    raise TimeoutError(f"waited {LIVE_SECONDS:.0f} s for {what}")


def _wait_accepting(dsn: str) -> None:
    pause, deadline = threading.Event(), monotonic() + BACK_SECONDS
    while monotonic() < deadline:
        with suppress(psycopg.OperationalError), psycopg.connect(dsn, connect_timeout=2):
            return
        pause.wait(LOOK_SECONDS)
    raise TimeoutError("PostgreSQL does not come back")
