"""Does to many messages what an operator may do to one, judged and audited as in a single call.

The matched ids are stored first and then processed in chunks. One commit has the effects of a
chunk, its audit rows and its place in the list. So after a crash another process continues, and
nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgspec import convert
from psycopg.types.json import Jsonb

from outbox.errors import MessageNotFound, NotHeld, NotRecheckable
from outbox.messages.message import DecidedBy, End, MessageStatus, Resolution
from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.bulk_actions import BulkAction, BulkKind, BulkMatch, BulkOrder
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.audit_log import audit_entry
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.held_admin import settle_held
from outbox.postgres.operators.message_browser import candidate_ids
from outbox.postgres.operators.operations import force_all, recheck_one
from outbox.postgres.operators.repairs import enter_repair, judge_findings
from outbox.postgres.sessions.answer_limit import ANSWER_SECONDS
from outbox.postgres.sessions.availability import lent, transaction
from outbox.postgres.sessions.reads import one_snapshot, rows_from, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
CHUNK: Final = 100

Failures = dict[HalfId, str]


class PostgresBulkActions:
    """Actions on many messages. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def match(self, order: BulkOrder) -> BulkMatch:
        """Return what an order would take; nothing is stored."""
        async with lent(self._pool) as connection, one_snapshot(connection):
            with connection.answering_within(ANSWER_SECONDS):
                return await _match(connection, order)

    async def begin(self, order: BulkOrder) -> BulkAction | None:
        """Store an order for what it takes now; ``advance`` executes it.

        None if that is more than ``max_items``. A message of a group that the caller is not bound
        to does not match. What matches is read on the same connection: after a failover that lost
        the last transactions, their ids are given to other messages.
        """
        async with lent(self._pool) as connection:
            with connection.answering_within(ANSWER_SECONDS):
                async with one_snapshot(connection):
                    found = (await _match(connection, order)).half_ids
            if len(found) > order.max_items:
                return None
            async with connection.transaction():
                number = await _store(connection, order, found)
        return await self.get(number, order.groups)

    async def get(self, number: UUID, groups: Sequence[int] | None) -> BulkAction | None:
        """Return an action that a caller of these groups may see, or None."""
        found = await rows_from(self._pool, SQL["read"], {"id": number, "groups": groups})
        return BulkAction(**found[0]) if found else None

    async def cancel(
        self, number: UUID, groups: Sequence[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Do nothing more of an action, audited; a finished one stays as it is.

        None if a caller of these groups may not see it.
        """
        async with transaction(self._pool) as connection:
            if await rows_of(connection, SQL["cancel"], {"id": number, "groups": groups}):
                await connection.execute(*audit_entry("bulk.cancel", str(number), action))
        return await self.get(number, groups)

    async def advance(self) -> bool:
        """Process the next chunk of an unfinished action; False if no action waits."""
        async with transaction(self._pool) as connection:
            claimed = await rows_of(connection, SQL["claim"], {"chunk": CHUNK})
            if not claimed:
                return False
            [row] = claimed
            half_ids: list[HalfId] = row["half_ids"]
            statuses = await read_statuses(connection, half_ids, with_publication=False)
            failures = await _apply(connection, row, half_ids, statuses)
            shown = [
                {
                    "message_id": str(statuses[each].message_id) if each in statuses else None,
                    "code": code,
                }
                for each, code in sorted(failures.items())
            ]
            progress = {
                "id": row["id"],
                "done": len(half_ids) - len(failures),
                "failed": len(failures),
                "failures": Jsonb(shown),
            }
            await connection.execute(SQL["advance"], progress)
        return True


async def _match(connection: AsyncConnection, order: BulkOrder) -> BulkMatch:
    """Return up to ``max_items`` ids and one more, in one snapshot of the caller."""
    limit, refused = order.max_items + 1, None
    if order.finding_ids is not None:
        half_ids, refused = await judge_findings(connection, order, order.finding_ids)
    elif order.named is not None:
        half_ids = await _taken(connection, order, order.named)
    else:
        half_ids = sorted(
            {
                half_id
                for each in order.filters
                for half_id in await candidate_ids(connection, each, limit, held=order.kind.is_held)
            }
        )
    return BulkMatch(half_ids=half_ids[:limit], refused=refused)


async def _taken(
    connection: AsyncConnection, order: BulkOrder, named: Mapping[HalfId, Nonce]
) -> list[HalfId]:
    """Return which of the named messages the action takes, oldest first."""
    statuses = await read_statuses(connection, list(named), with_publication=False)
    return [
        half_id
        for half_id, status in sorted(statuses.items())
        if named[half_id] == status.nonce
        and (order.groups is None or status.producer_group_id in order.groups)
        and order.kind.takes(status)
    ]


async def _store(connection: AsyncConnection, order: BulkOrder, half_ids: Sequence[HalfId]) -> UUID:
    row = {
        **asdict(order.action),
        "action": order.kind.value,
        "decision": order.decision and order.decision.value,
        "groups": order.groups,
        "half_ids": list(half_ids),
        "delay_seconds": order.delay_seconds,
    }
    [begun] = await rows_of(connection, SQL["begin"], row)
    number: UUID = begun["id"]
    detail = {"filter": dict(order.asked), "matched": len(half_ids)}
    entry = audit_entry(f"bulk.{order.kind}", str(number), order.action, detail)
    await connection.execute(*entry)
    return number


async def _apply(
    connection: AsyncConnection,
    row: Mapping[str, Any],
    half_ids: Sequence[HalfId],
    statuses: Mapping[HalfId, MessageStatus],
) -> Failures:
    """Process one chunk; return the failures, each with the slug of a single call."""
    action = convert(row, OperatorAction)
    known = [statuses[half_id] for half_id in half_ids if half_id in statuses]
    failures = dict.fromkeys(set(half_ids) - set(statuses), "message-not-found")
    kind = BulkKind(row["action"])
    if kind is BulkKind.FORCE_END:
        return failures | await _force_end(connection, Resolution(row["decision"]), known, action)
    for place, status in enumerate(known, 1):
        try:
            if kind is BulkKind.RECHECK:
                await recheck_one(connection, status, place, action)
            elif kind is BulkKind.REPUBLISH:
                if not await enter_repair(connection, row["id"], status, action):
                    failures[status.half_id] = "not-repairable"
            else:
                await settle_held(connection, kind, status.half_id, status.nonce, action)
        except NotRecheckable:
            failures[status.half_id] = "not-recheckable"
        except (NotHeld, MessageNotFound):
            failures[status.half_id] = "not-held"
    return failures


async def _force_end(
    connection: AsyncConnection,
    decision: Resolution,
    known: Sequence[MessageStatus],
    action: OperatorAction,
) -> Failures:
    """Decide in the operator's name, all at once; return the failures."""
    ends = [
        End(
            half_id=status.half_id,
            nonce=status.nonce,
            decision=decision,
            decided_by=DecidedBy.OPERATOR,
            reason=action.reason,
            actor=action.operator,
        )
        for status in known
    ]
    ended = await force_all(connection, ends, action)
    return {each.status.half_id: "already-ended" for each in ended if each and each.conflict}
