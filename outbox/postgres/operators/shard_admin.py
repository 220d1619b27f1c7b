"""Writes an operator's decision on a halted shard, with its audit row; on one session."""

from __future__ import annotations

from typing import Final

from outbox.errors import CursorMoved
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.relay.protocol.state import Cursor, HaltReason, Identity

SQL: Final = load(__name__)


def resume_shard(
    session: Connection,
    shard: int,
    halt: HaltReason,
    way: str,
    cursor: Cursor | None,
    identity: Identity | None,
    action: OperatorAction,
) -> None:
    """Let the shard continue from a cursor, its position unchanged; audited.

    None keeps what is stored. Raises CursorMoved when the shard is no longer halted for that
    reason.
    """
    row = {
        "name": f"relay:{shard}",
        "halt_reason": halt.value,
        **(cursor._asdict() if cursor else dict.fromkeys(Cursor._fields)),
        **(identity._asdict() if identity else dict.fromkeys(Identity._fields)),
    }
    with session.transaction():
        if session.execute(SQL["settle"], row).fetchone() is None:
            raise CursorMoved("the shard no longer waits for this decision")
        detail = {**row, "way": way}
        session.execute(*audit_entry("shard.resolve", f"shard {shard}", action, detail))
