"""PostgreSQL's disk is full for a while: nothing that cannot be stored is acknowledged (F11)."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.run_context import ChaosContext
from chaos.schedule import Fault
from chaos.servers.nodes import PostgresNode
from chaos.servers.small_disk import MEGABYTE, fill, free_bytes, make_room
from devservers.errors import ServerFailed

LOOK_SECONDS: Final = 0.05
BACK_SECONDS: Final = 60.0
ALL_SHARDS: Final = range(16)


class DiskFull:
    """Fills the small disk of PostgreSQL and keeps it full for the fault's seconds."""

    kinds = frozenset({"disk_full"})

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Do so; PostgreSQL, which may have given up, is there again afterwards.

        Raises NoSmallDisk if the profile gives PostgreSQL no disk of its own.
        """
        with world.postgres_alone:
            home, began = world.postgres.server.home, monotonic()
            world.recoveries.struck(fault.kind, fault.target, ALL_SHARDS)
            try:
                taken, given_up = self._keep_full(world, fault.seconds)
                left = free_bytes(home)
            finally:
                make_room(home)
            starts = bring_back(world.postgres)
        return {
            "taken_mb": taken // MEGABYTE,
            "free_bytes": left,
            "gave_up": given_up,
            "starts": starts,
            "seconds": round(monotonic() - began, 3),
        }

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the room was given back."""

    def _keep_full(self, world: ChaosContext, seconds: float) -> tuple[int, bool]:
        """Take also what PostgreSQL frees; return how much, and whether it has ended by itself."""
        until = monotonic() + seconds
        while True:
            taken = fill(world.postgres.server.home)
            if monotonic() >= until or world.stop.wait(LOOK_SECONDS):
                return taken, world.postgres.server.exit_code() is not None


def bring_back(postgres: PostgresNode) -> int:
    """Wait until it accepts connections; return how often it had to be started for that.

    It may be in the recovery from its own PANIC and give that up, too. Raises TimeoutError.
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
