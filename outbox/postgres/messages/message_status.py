"""The status of messages, derived from half, op, parking and the relay's position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from psycopg.rows import dict_row

from outbox.messages.message import MessageStatus, OpMessage, Publication, State
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.state_machine import derive
from outbox.postgres.schema.codes import DECIDED_BY_OF_CODE, DECISION_OF_CODE
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)


class PostgresMessageStatuses:
    """The MessageStatuses on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, MessageStatus]:
        """Return the status of messages; see MessageStatuses.read."""
        async with available(), self._pool.connection() as connection:
            return await read_statuses(connection, half_ids)


async def read_statuses(
    connection: AsyncConnection, half_ids: Sequence[HalfId], *, with_publication: bool = True
) -> dict[HalfId, MessageStatus]:
    """Read the status of messages by id, in one snapshot; unknown ids are missing.

    ``with_publication`` adds the partition and offset of published ones. That costs a second
    statement when there are any.
    """
    if not half_ids:
        return {}
    bounds = {"low": min(half_ids), "high": max(half_ids)}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["statuses"], {"half_ids": list(half_ids), **bounds})
        rows = await cursor.fetchall()
        statuses = {HalfId(row["half_id"]): _status(row) for row in rows}
        published = {
            HalfId(row["half_id"]): row["xid"]
            for row in rows
            if statuses[row["half_id"]].state is State.PUBLISHED
        }
        if not (with_publication and published):
            return statuses
        xids = list(published.values())
        await cursor.execute(
            SQL["publications"], {"half_ids": list(published), "xids": xids, **bounds}
        )
        for row in await cursor.fetchall():
            status = statuses[row["half_id"]]
            statuses[row["half_id"]] = replace(status, publication=_publication(row))
    return statuses


def _status(row: Mapping[str, Any]) -> MessageStatus:
    op = None
    if row["decision"] is not None:
        op = OpMessage(
            decision=DECISION_OF_CODE[row["decision"]],
            decided_by=DECIDED_BY_OF_CODE[row["decided_by"]],
            decided_at=row["decided_at"],
            reason=row["reason"],
        )
    return MessageStatus(
        half_id=HalfId(row["half_id"]),
        nonce=Nonce(row["nonce"]),
        producer_group_id=row["producer_group_id"],
        state=derive(
            decision=op.decision if op else None,
            parked=row["parked"],
            published=row["published"],
            held=row["held"],
        ),
        transaction_id=row["transaction_id"],
        op=op,
        publish_error=row["publish_error"] if row["held"] else None,
    )


def _publication(row: Mapping[str, Any]) -> Publication:
    return Publication(
        topic=row["topic"],
        partition=row["partition"],
        offset=row["offset"],
        published_at=row["published_at"],
    )
