"""Stops PostgreSQL hard, kills a backend, or leaves a transaction open."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import Final

import psycopg

from chaos.context import Context
from chaos.schedule import Fault
from chaos.servers.probes import wait_until_true

BACK_SECONDS: Final = 300.0
"""Nothing is measured here: this ends only a run whose PostgreSQL never comes back."""
CONNECT_SECONDS: Final = 5.0
BACKENDS: Final = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    " AND pid <> pg_backend_pid() ORDER BY pid"
)


def stop(context: Context, fault: Fault) -> bool:
    """Stop PostgreSQL at once, without a shutdown, for the fault's seconds."""
    with context.postgres_alone:
        met = context.postgres.server.exit_code() is None
        context.postgres.stop_immediate()
        context.stop.wait(fault.seconds)
        context.postgres.start()
        return met


def kill_backend(context: Context, fault: Fault) -> bool:
    """Kill one backend (SIGKILL): PostgreSQL ends all sessions and recovers."""
    dsn = context.postgres.dsn()
    with context.postgres_alone:
        with psycopg.connect(dsn, autocommit=True) as connection:
            pids: list[int] = []

            def connected() -> bool:
                pids[:] = [pid for (pid,) in connection.execute(BACKENDS)]
                return bool(pids)

            if not wait_until_true(connected, CONNECT_SECONDS, context.stop):
                return False
            os.kill(context.random(f"backend/{fault.at}").choice(pids), signal.SIGKILL)
        if not wait_until_true(lambda: accepts(dsn), BACK_SECONDS, threading.Event()):
            raise TimeoutError("PostgreSQL does not come back")
    return True


def leave_transaction_open(context: Context, fault: Fault) -> bool:
    """Leave a transaction with an xid open for the fault's seconds: it stops the watermark."""
    met = False
    with (
        suppress(psycopg.Error),  # another fault may stop PostgreSQL meanwhile
        psycopg.connect(context.postgres.dsn(), connect_timeout=2) as connection,
    ):
        connection.execute("SELECT pg_current_xact_id()")
        met = True
        context.stop.wait(fault.seconds)
        connection.rollback()
    return met


def accepts(dsn: str) -> bool:
    """Return whether PostgreSQL accepts connections."""
    try:
        with psycopg.connect(dsn, connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False
