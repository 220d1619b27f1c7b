"""Kills the primary; its standby takes over at the same address (reliability F9, F10)."""

from __future__ import annotations

import shutil
import threading
from itertools import count
from time import monotonic
from typing import Final

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.history.recovery import ALL_SHARDS
from chaos.profiles.schedule import Fault
from chaos.servers.lost_tails import (
    contents,
    contents_of_stopped,
    lost_tail,
    wait_every_shard_has_a_cursor,
    write_tail,
)
from chaos.servers.standby import PrimaryAndStandby

SYNCHRONOUS: Final = "promote_synchronous"
ASYNCHRONOUS: Final = "promote_asynchronous"


class Failover:
    """Creates a standby, lets it follow, kills the primary and promotes the standby.

    A synchronous standby loses nothing that was acknowledged, so nothing is recorded as lost. An
    asynchronous one stops following some seconds before the kill, so it lacks the newest commits.
    """

    kinds = frozenset({SYNCHRONOUS, ASYNCHRONOUS})

    def __init__(self) -> None:
        self._numbers = count(1)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Perform a whole failover."""
        with context.postgres_alone:
            if not wait_every_shard_has_a_cursor(context.postgres):
                return {"skipped": "not every shard has a cursor"}
            home = context.dir / "postgres" / f"standby-{next(self._numbers)}"
            pair = PrimaryAndStandby(context.postgres, home, context.server_thread)
            pair.follow()
            if fault.kind == SYNCHRONOUS:
                pair.make_synchronous()
            else:
                pair.stop_following()
            threading.Event().wait(fault.seconds)
            return self._take_over(context, fault, pair)

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: the standby is the primary now."""

    def _take_over(self, context: ChaosContext, fault: Fault, pair: PrimaryAndStandby) -> Facts:
        began, old = monotonic(), pair.primary
        context.recoveries.record_fault(fault.kind, fault.target, ALL_SHARDS)
        old.server.kill()
        context.postgres = pair.promote()
        after = contents(context.postgres.dsn())
        context.database_moved()
        down = monotonic() - began
        tail = lost_tail(contents_of_stopped(old, context.server_thread), after)
        shutil.rmtree(old.data_dir, ignore_errors=True)
        return {**_facts(context, fault, tail), "down_seconds": round(down, 3)}


def _facts(context: ChaosContext, fault: Fault, tail: list[dict[str, object]]) -> Facts:
    if fault.kind == SYNCHRONOUS:
        return {"unacknowledged": len(tail), "met": True}
    return {
        "file": write_tail(context.dir, tail),
        "halves_lost": sum(1 for row in tail if row["half_lost"]),
        "decisions_lost": sum(1 for row in tail if row["op"] is not None),
        "met": bool(tail),
    }
