"""Uses transaction ids up, as neighbours of a service do, so that its leaves fill and retire."""

from __future__ import annotations

import threading
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg

from chaos.faults.nemesis import Facts
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault

AT_ONCE: Final = 20_000
"""Transactions per statement: short, so that no snapshot of it stops the watermark for long."""
LOOK_SECONDS: Final = 0.2
MOST_SECONDS: Final = 180.0
NEWEST_LEAF: Final = (
    "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + base) >> 20"
    " FROM outbox.installation"
)
TRANSACTIONS: Final = """
DO $$ BEGIN FOR n IN 1..{} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$
"""


class PassLeaf:
    """Ends transactions that write nothing until the present leaf is full (real ids, no rows)."""

    kinds = frozenset({"pass_leaf"})

    def __init__(self) -> None:
        self._alone = threading.Lock()

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Fill the present leaf, also beyond a crash of PostgreSQL."""
        with self._alone:
            began, first, now = monotonic(), None, None
            while not context.stop.is_set() and monotonic() - began < MOST_SECONDS:
                with suppress(psycopg.Error):
                    now = self._use_up(context)
                    first = now if first is None else first
                    if now > first:
                        break
                    continue
                context.stop.wait(LOOK_SECONDS)
            seconds = round(monotonic() - began, 3)
            return {"leaf": first, "now": now, "met": first != now, "seconds": seconds}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: used ids stay used."""

    def _use_up(self, context: ChaosContext) -> int:
        """Use some ids up; return the leaf that was the newest before."""
        with psycopg.connect(context.postgres.dsn(), autocommit=True) as connection:
            row = connection.execute(NEWEST_LEAF).fetchone()
            connection.execute(TRANSACTIONS.format(AT_ONCE).encode())
        assert row is not None
        return int(row[0])
