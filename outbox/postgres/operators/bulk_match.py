"""Finds the messages that an order of an operator takes now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.bulk_actions import BulkMatch, BulkOrder
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.message_browser import candidate_ids
from outbox.postgres.operators.repairs import judge_findings

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection


async def match_order(connection: AsyncConnection, order: BulkOrder) -> BulkMatch:
    """Return up to ``max_items`` ids and one more, in one snapshot of the caller."""
    wanted, limit = order.wanted, order.max_items + 1
    if wanted.finding_ids is not None:
        found = await judge_findings(connection, order)
        return BulkMatch(half_ids=found.half_ids[:limit], refused=found.refused)
    if wanted.named is not None:
        return BulkMatch(half_ids=(await _named(connection, order, wanted.named))[:limit])
    ids = {
        half_id
        for each in wanted.filters
        for half_id in await candidate_ids(connection, each, limit, held=order.kind.is_held)
    }
    return BulkMatch(half_ids=sorted(ids)[:limit])


async def _named(
    connection: AsyncConnection, order: BulkOrder, named: frozenset[tuple[HalfId, Nonce]]
) -> list[HalfId]:
    """Return which of the named messages the action takes, oldest first."""
    half_ids = sorted({half_id for half_id, _ in named})
    statuses = await read_statuses(connection, half_ids, with_publication=False)
    return [
        half_id
        for half_id in half_ids
        if (status := statuses.get(half_id)) is not None
        and (half_id, status.nonce) in named
        and (order.groups is None or status.producer_group_id in order.groups)
        and order.kind.takes(status)
    ]
