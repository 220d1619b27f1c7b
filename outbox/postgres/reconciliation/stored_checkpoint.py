"""Where the next reconciliation starts and what it carries, on the connection of the run store.

The cut moves in the transaction that stores the run, and only if no other run has moved it since.
That alone is what makes runs safe; the lock that a run holds meanwhile spares the other its work.
"""

from __future__ import annotations

from typing import Final

from psycopg.types.json import Jsonb

from outbox.errors import RunOvertaken, RunUnderWay
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.stored_run import CarriedRow, Chain, ChainStep

SQL: Final = load("outbox.postgres.reconciliation.stored_checkpoint")


def hold_chain(connection: Connection) -> None:
    """Take the chain until the connection is closed. Raises RunUnderWay when another one has it."""
    row = connection.execute(SQL["hold"]).fetchone()
    if row is None or not row[0]:
        raise RunUnderWay


def read_chain(connection: Connection) -> Chain | None:
    """Return the last cut and what it left open; the caller's transaction makes them one."""
    row = connection.execute(SQL["chain"]).fetchone()
    if row is None:
        return None
    carried = [CarriedRow(*each) for each in connection.execute(SQL["carried"])]
    return Chain(run_id=row[0], cut=row[1], carried=tuple(carried))


def keep_chain(connection: Connection, after: str | None) -> None:
    """Let nobody move the cut before the transaction ends. Raises RunOvertaken if somebody has."""
    row = connection.execute(SQL["moved_by"]).fetchone()
    if (row[0] if row else None) != after:
        raise RunOvertaken


def move_chain(connection: Connection, run_id: str, step: ChainStep) -> None:
    """Replace the last cut and what is carried. Raises RunOvertaken, and has changed nothing."""
    cut = None if step.cut is None else Jsonb(dict(step.cut))
    moved = connection.execute(SQL["move"], {"run_id": run_id, "cut": cut, "after": step.after})
    if not moved.rowcount:
        raise RunOvertaken
    connection.execute(SQL["forget_carried"])
    with connection.cursor() as cursor, cursor.copy(SQL["carry"]) as copy:
        for row in step.carried:
            copy.write_row(row)
    for shard, (xid, n) in step.positions.items():
        connection.execute(SQL["note"], {"shard": shard, "xid": xid, "n": n})
