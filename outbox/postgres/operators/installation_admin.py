"""Gives a copied database an installation id of its own, with every shard halted; audited."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from outbox.errors import DatabaseUnavailable, ShardsHeld
from outbox.operators.message_view import OperatorAction
from outbox.postgres.relay.commit_log import LOCK_SPACE
from outbox.postgres.sessions.connections import connect
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.state import HaltReason

SQL: Final = load("outbox.postgres.operators.installation_admin")
AUDIT: Final = load("outbox.postgres.operators.operations")["audit"]


class Renewed(NamedTuple):
    """The installation id that the database was copied with, and its own."""

    was: UUID
    now: UUID


def renew_installation(database_url: str, action: OperatorAction) -> Renewed:
    """Renew the id and halt every shard as `cluster_changed`, in one transaction.

    Positions stay: what the original had published is not published again. Raises ShardsHeld
    while a relay of this database holds a shard, and DatabaseUnavailable.
    """
    try:
        with connect(database_url, "cli") as session, session.transaction():
            held = [row[0] for row in session.execute(SQL["hold_shards"], {"space": LOCK_SPACE})]
            if held:
                raise ShardsHeld(held)
            row = session.execute(SQL["renew"]).fetchone()
            assert row is not None
            session.execute(SQL["halt_all"], {"reason": HaltReason.CLUSTER_CHANGED.value})
            renewed = Renewed(*row)
            session.execute(AUDIT, _audited(renewed, action))
            return renewed
    except psycopg.Error as error:
        raise DatabaseUnavailable(str(error).strip().splitlines()[0]) from error


def _audited(renewed: Renewed, action: OperatorAction) -> dict[str, object]:
    return {
        "action": "installation.renew",
        "target": f"installation {renewed.now}",
        "half_id": None,
        "key_id": action.key_id,
        "operator": action.operator,
        "reason": action.reason,
        "detail": Jsonb({"was": str(renewed.was), "now": str(renewed.now)}),
    }
