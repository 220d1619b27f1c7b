"""The status of messages, derived from half, op, parking and the relay's position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from msgspec.structs import replace

from outbox.messages.message import (
    DecidedBy,
    End,
    MessageStatus,
    OpMessage,
    Publication,
    Resolution,
    State,
)
from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.messages.state_machine import derive
from outbox.postgres.messages.half_rows import bounds
from outbox.postgres.schema.codes import DECIDED_BY_OF_CODE, DECISION_OF_CODE
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
IN_KAFKA: Final = "its record was in Kafka"
"""The reason of a decision that recovery has made."""


async def statuses_now(pool: Pool, half_ids: Sequence[HalfId]) -> Mapping[HalfId, MessageStatus]:
    """Read the status of messages; unknown ids are missing. Raises DatabaseUnavailable."""
    async with lent(pool) as connection:
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
    low_high = bounds(half_ids)
    rows = await rows_of(connection, SQL["statuses"], {"half_ids": list(half_ids), **low_high})
    statuses = {HalfId(row["half_id"]): _status(row) for row in rows}
    published = {
        HalfId(row["half_id"]): row["xid"]
        for row in rows
        if statuses[row["half_id"]].state is State.PUBLISHED
    }
    if with_publication and published:
        asked = {"half_ids": list(published), "xids": list(published.values()), **low_high}
        for row in await rows_of(connection, SQL["publications"], asked):
            status = statuses[row["half_id"]]
            statuses[row["half_id"]] = replace(status, publication=convert(row, Publication))
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
        leader=row["leader_nonce"] and message_id_of(row["leader_id"], row["leader_nonce"]),
    )


async def read_orphans(
    connection: AsyncConnection, ends: Sequence[End]
) -> dict[tuple[HalfId, Nonce], MessageStatus]:
    """Read the status of messages that only Kafka has: PUBLISHED, decided COMMIT.

    Runs no statement if ``ends`` is empty. Unknown ids and unnamed records are missing.
    """
    if not ends:
        return {}
    asked = {
        "half_ids": [end.half_id for end in ends],
        "nonces": [end.nonce for end in ends],
    }
    return {
        (row["half_id"], row["nonce"]): MessageStatus(
            half_id=row["half_id"],
            nonce=row["nonce"],
            producer_group_id=row["producer_group_id"],
            state=State.PUBLISHED,
            transaction_id=row["transaction_id"],
            op=OpMessage(
                decision=Resolution.COMMIT,
                decided_by=DecidedBy.RECOVERY,
                decided_at=row["found_at"],
                reason=IN_KAFKA,
            ),
        )
        for row in await rows_of(connection, SQL["orphans"], asked)
    }
