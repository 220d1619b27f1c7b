"""The primary dies and its standby takes over, at the same address (reliability F9, F10)."""

from __future__ import annotations

import shutil
import threading
from itertools import count
from time import monotonic
from typing import Final

from chaos.faults.nemesis import Facts
from chaos.run_context import ChaosContext
from chaos.schedule import Fault
from chaos.servers.lost_tails import (
    contents,
    contents_of_stopped,
    lost_tail,
    may_lose_its_tail,
    write_tail,
)
from chaos.servers.standby import PrimaryAndStandby

ALL_SHARDS: Final = range(16)
SYNCHRONOUS: Final = "promote_synchronous"
ASYNCHRONOUS: Final = "promote_asynchronous"


class Failover:
    """Makes a standby, lets it follow, kills the primary and promotes the standby.

    A synchronous one may lose nothing that was acknowledged, so nothing is noted as lost. An
    asynchronous one stops following the fault's seconds before: it never has that tail.
    """

    kinds = frozenset({SYNCHRONOUS, ASYNCHRONOUS})

    def __init__(self) -> None:
        self._numbers = count(1)

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Perform a whole failover."""
        with world.postgres_alone:
            if not may_lose_its_tail(world):
                return {"skipped": "not every shard has begun"}
            home = world.dir / "postgres" / f"standby-{next(self._numbers)}"
            pair = PrimaryAndStandby(world.postgres, home, world.keeper)
            pair.follow()
            if fault.kind == SYNCHRONOUS:
                pair.be_synchronous()
            else:
                pair.stop_following()
            threading.Event().wait(fault.seconds)
            return self._take_over(world, fault, pair)

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the standby is the primary now."""

    def _take_over(self, world: ChaosContext, fault: Fault, pair: PrimaryAndStandby) -> Facts:
        began, old = monotonic(), pair.primary
        world.recoveries.struck(fault.kind, fault.target, ALL_SHARDS)
        old.server.kill()
        world.postgres = pair.promote()
        after = contents(world.postgres.dsn())
        world.database_moved()
        down = monotonic() - began
        tail = lost_tail(contents_of_stopped(old, world.keeper), after)
        shutil.rmtree(old.data_dir, ignore_errors=True)
        return {**_told(world, fault, tail), "down_seconds": round(down, 3)}


def _told(world: ChaosContext, fault: Fault, tail: list[dict[str, object]]) -> Facts:
    if fault.kind == SYNCHRONOUS:
        return {"unacknowledged": len(tail)}
    return {
        "file": write_tail(world.dir, tail),
        "halves_lost": sum(1 for row in tail if row["half_lost"]),
        "decisions_lost": sum(1 for row in tail if row["op"] is not None),
    }
