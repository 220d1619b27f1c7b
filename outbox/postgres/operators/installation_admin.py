"""Gives a copied database a new installation id and halts every shard; audited."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from outbox.errors import ShardsHeld
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.audit_log import audit_command
from outbox.postgres.relay.shard_lock import hold_shards
from outbox.postgres.sessions.availability import unavailable_on
from outbox.postgres.sessions.connections import connect
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.state import HaltReason

SQL: Final = load(__name__)


class RenewedInstallation(NamedTuple):
    """The installation id that the database was copied with, and its new one."""

    was: UUID
    now: UUID


def renew_installation(database_url: str, action: OperatorAction) -> RenewedInstallation:
    """Renew the id and halt every shard as `cluster_changed`, in one transaction.

    Positions stay unchanged: what the original database has published is not published again.
    Raises ShardsHeld while a relay of this database has a shard, and DatabaseUnavailable.
    """
    with (
        unavailable_on(psycopg.Error),
        connect(database_url, "cli") as session,
        session.transaction(),
    ):
        held = hold_shards(session)
        if held:
            raise ShardsHeld(held)
        row = session.execute(SQL["renew"]).fetchone()
        assert row is not None
        session.execute(SQL["halt_all"], {"reason": HaltReason.CLUSTER_CHANGED.value})
        renewed = RenewedInstallation(*row)
        detail = {"was": str(renewed.was), "now": str(renewed.now)}
        audit_command(session, "installation.renew", f"installation {renewed.now}", action, detail)
    return renewed
