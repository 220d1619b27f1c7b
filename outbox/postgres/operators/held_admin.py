"""Held records as operators see and settle them, each change in one transaction with its audit row.

The relay reads these rows at least once per second, and makes no decision from remembered rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from outbox.errors import MessageNotFound, NotHeld
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.operators.bulk_actions import BulkKind
from outbox.operators.held_records import COUNTED, HeldRecord
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.sessions.availability import transaction
from outbox.postgres.sessions.reads import read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
AUDITED_AS: Final = {BulkKind.RELEASE_HELD: "held.release", BulkKind.DROP_HELD: "held.drop"}


class PostgresHeldAdmin:
    """An operator's access to held records. Methods raise DatabaseUnavailable.

    ``groups`` are the ids that the caller is bound to (None: all).
    """

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def list_held(
        self,
        *,
        limit: int,
        after: HalfId | None = None,
        topic: str | None = None,
        refused_only: bool = False,
        dropped: bool = False,
        groups: Sequence[int] | None = None,
    ) -> Sequence[HeldRecord]:
        """Return open held records by ascending half id, or the dropped ones.

        ``refused_only`` leaves out those that only wait behind another.
        """
        asked = {
            "after": after,
            "topic": topic,
            "refused_only": refused_only,
            "dropped": dropped,
            "groups": groups,
            "limit": limit,
            "counted": COUNTED,
        }
        async with transaction(self._pool) as connection:
            await read_in_key_order(connection)
            rows = await rows_of(connection, SQL["list_held"], asked)
        return [
            HeldRecord(message_id=message_id_text(row.pop("half_id"), row.pop("nonce")), **row)
            for row in rows
        ]

    async def settle(
        self,
        kind: BulkKind,
        half_id: HalfId,
        nonce: Nonce,
        action: OperatorAction,
        groups: Sequence[int] | None = None,
    ) -> None:
        """Release or drop one record, audited; see settle_held."""
        async with transaction(self._pool) as connection:
            await settle_held(connection, kind, half_id, nonce, action, groups)


async def settle_held(
    connection: AsyncConnection,
    kind: BulkKind,
    half_id: HalfId,
    nonce: Nonce,
    action: OperatorAction,
    groups: Sequence[int] | None = None,
) -> None:
    """Release or drop one record in the caller's transaction.

    A released record's scope is tried again at the relay's next read, within about a second. A
    dropped one is never published, stays COMMITTED, and blocks no other. Raises MessageNotFound,
    also for a record of other groups, or NotHeld when the record is released or dropped.
    """
    asked = {"half_id": half_id, "nonce": nonce, "groups": groups}
    found = await rows_of(connection, SQL["lock_held"], asked)
    if not found:
        raise MessageNotFound
    if not found[0]["is_open"]:
        raise NotHeld
    await connection.execute(SQL[kind], {"half_id": half_id, "reason": action.reason})
    entry = audit_entry(AUDITED_AS[kind], message_id_text(half_id, nonce), action, half_id=half_id)
    await connection.execute(*entry)
