"""Repairs of lost and altered messages: what prevents each, and its row among the held records.

The relay of the shard publishes a repair like any held record. The batch has the kind ``repair``,
and its records have the number of the action that ordered them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.rows import dict_row

from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId, Nonce, message_id_of, message_id_text
from outbox.messages.record import digest_of
from outbox.operators.message_view import OperatorAction
from outbox.operators.repairs import Repair
from outbox.postgres.messages.half_reads import read_whole_halves
from outbox.postgres.operators.audit_log import audit
from outbox.postgres.sessions.answer_limit import ANSWER_SECONDS
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import REPAIRABLE_CLASSES

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
READ_AT_ONCE: Final = 100
DIFFERS: Final = "digest-differs"


class PostgresRepairs:
    """The Repairs on a pool of connections."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None, *, accept_order: bool
    ) -> Sequence[Repair]:
        """Report for each known finding whether it can be repaired; see Repairs.plan."""
        asked = {
            "finding_ids": list(finding_ids),
            "groups": None if groups is None else sorted(groups),
            "accept_order": accept_order,
            "classes": list(REPAIRABLE_CLASSES),
        }
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            with connection.answering_within(ANSWER_SECONDS):
                await cursor.execute(SQL["plan"], asked)
            planned = [_repair(row) for row in await cursor.fetchall()]
            altered = await _altered(connection, [each for each in planned if not each.refused])
        return [replace(r, refused=DIFFERS) if r.half_id in altered else r for r in planned]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOrder:
    """An order to publish a message again: the action's number, the earliest time, who asked."""

    number: UUID
    due_at: datetime
    action: OperatorAction


async def enter_repair(
    connection: AsyncConnection, repair: RepairOrder, half_id: HalfId, nonce: Nonce
) -> bool:
    """Make the relay publish a message again, audited, in the caller's transaction.

    Returns False if it is already held or not committed, or no open finding lists it as lost or
    altered.
    """
    number, action = str(repair.number), repair.action
    asked = {
        "half_id": half_id,
        "repair": number,
        "due_at": repair.due_at,
        "classes": list(REPAIRABLE_CLASSES),
    }
    if not await (await connection.execute(SQL["enter"], asked)).fetchall():
        return False
    target = message_id_text(half_id, nonce)
    await audit(connection, "message.republish", target, half_id, action, {"repair": number})
    return True


async def _altered(connection: AsyncConnection, repairs: Sequence[Repair]) -> set[HalfId]:
    """Return the messages whose stored content has another digest than when it was prepared."""
    half_ids = [each.half_id for each in repairs if each.half_id is not None]
    altered: set[HalfId] = set()
    for at in range(0, len(half_ids), READ_AT_ONCE):
        halves = await read_whole_halves(connection, half_ids[at : at + READ_AT_ONCE])
        altered |= {half_id for half_id, half in halves.items() if not _is_intact(half)}
    return altered


def _is_intact(half: HalfMessage | None) -> bool:
    if half is None:
        return False
    message = half.message
    group, transaction_id = message.producer_group, message.transaction_id
    digest = digest_of(half.half_id, half.nonce, message.content, group, transaction_id)
    return digest == half.content_digest


def _repair(row: dict[str, Any]) -> Repair:
    half_id, nonce = row["half_id"], row["nonce"]
    return Repair(
        finding_id=row["finding_id"],
        half_id=None if half_id is None else HalfId(half_id),
        message_id=None if half_id is None else message_id_of(HalfId(half_id), Nonce(nonce)),
        refused=row["refused"],
    )
