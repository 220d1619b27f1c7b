"""Held records as operators see and settle them, each change in one transaction with its audit row.

The relay reads these rows at least once per second, and makes no decision from remembered rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from outbox.errors import MessageNotFound, NotHeld
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.operators.bulk_actions import BulkKind
from outbox.operators.held_records import COUNTED, HeldMessage
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.audit_log import audit
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
_ALL: Final = {
    "half_id": None,
    "after": None,
    "topic": None,
    "refused_only": False,
    "dropped": False,
}
"""The conditions of a list that is not narrowed."""


class PostgresHeldAdmin:
    """An operator's access to held records. Methods raise DatabaseUnavailable."""

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
        groups: frozenset[int] | None = None,
    ) -> Sequence[HeldMessage]:
        """Return open held records by ascending half id, or the dropped ones.

        ``refused_only`` leaves out those that only wait behind another; ``groups`` are the ids that
        the caller is bound to (None: all).
        """
        rows = await self._rows(
            after=after,
            topic=topic,
            refused_only=refused_only,
            dropped=dropped,
            groups=groups,
            limit=limit,
        )
        return [_held(row) for row in rows]

    async def read_held(
        self, half_id: HalfId, nonce: Nonce, groups: frozenset[int] | None = None
    ) -> HeldMessage:
        """Return one held record, open or dropped. Raises MessageNotFound, NotHeld when released.

        Its ``waiting_behind`` counts the messages that a drop or a release would unblock. A record
        of other ``groups`` (None: all) is not found.
        """
        rows = await self._rows(half_id=half_id, groups=groups, limit=1)
        if not rows or rows[0]["nonce"] != nonce:
            raise MessageNotFound
        if rows[0]["released_at"] is not None:
            raise NotHeld
        return _held(rows[0])

    async def settle(
        self, kind: BulkKind, half_id: HalfId, nonce: Nonce, action: OperatorAction
    ) -> None:
        """Release or drop one record, audited; see settle_held."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await settle_held(connection, kind, half_id, nonce, action)

    async def _rows(
        self, *, limit: int, groups: frozenset[int] | None, **asked: Any
    ) -> list[dict[str, Any]]:
        bound = None if groups is None else sorted(groups)
        given = {**_ALL, **asked, "limit": limit, "groups": bound, "counted": COUNTED}
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await read_in_key_order(connection)
            return await rows_of(connection, SQL["list_held"], given)


async def settle_held(
    connection: AsyncConnection,
    kind: BulkKind,
    half_id: HalfId,
    nonce: Nonce,
    action: OperatorAction,
) -> None:
    """Release or drop one record in the caller's transaction.

    A released record's scope is tried again at the relay's next read, within about a second. A
    dropped one is never published, stays COMMITTED, and blocks no other. Raises MessageNotFound, or
    NotHeld when the record is released or dropped.
    """
    statement, what = _SETTLED_BY[kind]
    await _lock(connection, half_id, nonce)
    await connection.execute(SQL[statement], {"half_id": half_id, "reason": action.reason})
    await audit(connection, what, message_id_text(half_id, nonce), half_id, action)


_SETTLED_BY: Final = {
    BulkKind.RELEASE_HELD: ("release_now", "held.release"),
    BulkKind.DROP_HELD: ("drop_held", "held.drop"),
}


async def _lock(connection: AsyncConnection, half_id: HalfId, nonce: Nonce) -> None:
    cursor = await connection.execute(SQL["lock_held"], {"half_id": half_id, "nonce": nonce})
    row = await cursor.fetchone()
    if row is None:
        raise MessageNotFound
    if not row[0]:
        raise NotHeld


def _held(row: Mapping[str, Any]) -> HeldMessage:
    """Return a record that is open or dropped: no time of a release is shown."""
    return HeldMessage(**{name: row[name] for name in row if name != "released_at"})
