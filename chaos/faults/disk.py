"""Fills PostgreSQL's disk for a while: what cannot be stored must not be acknowledged (F11)."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.history.recovery import ALL_SHARDS
from chaos.profiles.schedule import Fault
from chaos.servers.nodes import PostgresNode
from chaos.servers.small_disk import MEGABYTE, fill, free_bytes, make_room
from devservers.errors import ServerFailed

LOOK_SECONDS: Final = 0.05
BACK_SECONDS: Final = 300.0
"""Nothing is measured here: this ends only a run whose PostgreSQL never comes back."""
SOME_MEGABYTES: Final = (
    "CREATE TEMP TABLE some ON COMMIT DROP AS"
    " SELECT md5(n::text) FROM generate_series(1, 50000) AS n"
)


class DiskFull:
    """Fills the small disk of PostgreSQL and keeps it full for the fault's seconds."""

    kinds = frozenset({"disk_full"})

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Fill the disk, free it and bring PostgreSQL back, which may have ended by itself.

        Raises NoSmallDisk if the profile gives PostgreSQL no separate disk.
        """
        with context.postgres_alone:
            home, began = context.postgres.server.home, monotonic()
            context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
            try:
                taken, met = self._keep_full(context, fault.seconds)
                left = free_bytes(home)
            finally:
                make_room(home)
            starts = restart_postgres(context.postgres)
        return {
            "met": met,
            "taken_mb": taken // MEGABYTE,
            "free_bytes": left,
            "starts": starts,
            "seconds": round(monotonic() - began, 3),
        }

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the disk has free space again."""

    def _keep_full(self, context: ChaosContext, seconds: float) -> tuple[int, bool]:
        """Fill also what PostgreSQL frees; return the bytes, and whether a write was refused."""
        until, met = monotonic() + seconds, False
        while True:
            taken = fill(context.postgres.server.home)
            met = met or not _can_write(context.postgres)
            if monotonic() >= until or context.stop.wait(LOOK_SECONDS):
                return taken, met


def _can_write(postgres: PostgresNode) -> bool:
    """Return whether PostgreSQL stores a few megabytes; it may have ended by itself."""
    try:
        with psycopg.connect(postgres.dsn(), connect_timeout=2) as connection:
            connection.execute(SOME_MEGABYTES)
            return True
    except psycopg.Error:
        return False


def restart_postgres(postgres: PostgresNode) -> int:
    """Wait until PostgreSQL accepts connections; return the number of starts that this took.

    It may fail again during the recovery from its own PANIC. Raises TimeoutError.
    """
    starts, deadline = 0, monotonic() + BACK_SECONDS
    while monotonic() < deadline:
        if postgres.server.exit_code() is not None:
            starts += 1
            with suppress(ServerFailed):
                postgres.start(deadline - monotonic())
        with suppress(psycopg.OperationalError), psycopg.connect(postgres.dsn(), connect_timeout=2):
            return starts
    raise TimeoutError("PostgreSQL does not come back from its full disk")
