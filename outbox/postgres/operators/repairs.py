"""Repairs of lost and altered messages: what prevents each, and its row among the held records.

The relay of the shard publishes a repair like any held record. The batch has the kind ``repair``,
and its records have the number of the action that ordered them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from outbox.messages.message import MessageStatus
from outbox.messages.message_id import HalfId
from outbox.messages.record import digest_of
from outbox.operators.bulk_actions import BulkOrder, RefusalCode, RefusedFinding
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.messages.half_rows import read_whole_halves
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import REPAIRABLE_CAUSES

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)


async def judge_findings(
    connection: AsyncConnection, order: BulkOrder, finding_ids: Sequence[str]
) -> tuple[list[HalfId], list[RefusedFinding]]:
    """Return the messages of the known findings of these groups that can be published again.

    Returns the refused findings too.
    """
    asked = {
        "finding_ids": list(finding_ids),
        "groups": order.groups,
        "accept_order": order.accept_order,
        "causes": list(REPAIRABLE_CAUSES),
    }
    rows = await rows_of(connection, SQL["judge"], asked)
    allowed = sorted({HalfId(row["half_id"]) for row in rows if row["refused"] is None})
    altered = await _altered(connection, allowed)
    refused = [
        RefusedFinding(finding_id=row["finding_id"], code=code)
        for row in rows
        if (code := _refusal(row, altered)) is not None
    ]
    return [each for each in allowed if each not in altered], refused


async def enter_repair(
    connection: AsyncConnection, number: UUID, status: MessageStatus, action: OperatorAction
) -> bool:
    """Make the relay publish a message again, audited, in the caller's transaction.

    Returns False if it is already held or not committed, or no open finding lists it as lost or
    altered. ``number`` is that of the action.
    """
    asked = {
        "half_id": status.half_id,
        "repair": str(number),
        "causes": list(REPAIRABLE_CAUSES),
    }
    if not await rows_of(connection, SQL["enter"], asked):
        return False
    target, detail = str(status.message_id), {"repair": str(number)}
    entry = audit_entry("message.republish", target, action, detail, status.half_id)
    await connection.execute(*entry)
    return True


def _refusal(row: Mapping[str, Any], altered: set[HalfId]) -> RefusalCode | None:
    refused: RefusalCode | None = row["refused"]
    return "digest-differs" if row["half_id"] in altered and not refused else refused


async def _altered(connection: AsyncConnection, half_ids: Sequence[HalfId]) -> set[HalfId]:
    """Return the messages whose stored content has another digest than when it was prepared."""
    altered = set(half_ids)
    for half_id in half_ids:  # one at a time: values may be large
        half = (await read_whole_halves(connection, [half_id])).get(half_id)
        if half and digest_of(half_id, half.nonce, half.message) == half.content_digest:
            altered.remove(half_id)
    return altered
