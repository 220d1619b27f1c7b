"""Does to many messages what an operator may do to one, judged and audited as in a single call.

The matched ids are stored first and then processed in chunks. One commit has the effects of a
chunk, its audit rows and its place in the list. So after a crash another process continues, and
nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from outbox.errors import MessageNotFound, NotHeld, NotRecheckable
from outbox.messages.message import DecidedBy, End, MessageStatus, Resolution
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.state_machine import contradicts
from outbox.operators.bulk_actions import BulkAction, BulkKind, BulkMatch, BulkOrder
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.audit_log import audit
from outbox.postgres.operators.held_admin import settle_held
from outbox.postgres.operators.message_browser import candidate_ids
from outbox.postgres.operators.operations import force_all, recheck_one
from outbox.postgres.operators.repairs import enter_repair, judge_findings
from outbox.postgres.sessions.answer_limit import ANSWER_SECONDS
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import one_snapshot, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
CHUNK: Final = 100
FAILURES_KEPT: Final = 100

Failures = dict[HalfId, str]


class PostgresBulkActions:
    """Actions on many messages. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def match(self, order: BulkOrder) -> BulkMatch:
        """Return what an order would take; nothing is stored."""
        async with available(), self._pool.connection() as connection, one_snapshot(connection):
            with connection.answering_within(ANSWER_SECONDS):
                return await _match(connection, order)

    async def begin(self, order: BulkOrder) -> BulkAction | None:
        """Store an order for what it takes now; ``advance`` executes it.

        None if that is more than ``max_items``. A message of a group that the caller is not bound
        to does not match. What matches is read on the same connection: after a failover that lost
        the last transactions, their ids are given to other messages.
        """
        async with available(), self._pool.connection() as connection:
            with connection.answering_within(ANSWER_SECONDS):
                async with one_snapshot(connection):
                    found = (await _match(connection, order)).half_ids
            if len(found) > order.max_items:
                return None
            async with connection.transaction():
                return await _store(connection, order, found)

    async def get(self, number: UUID, groups: frozenset[int] | None) -> BulkAction | None:
        """Return an action that a caller of these groups may see, or None."""
        async with available(), self._pool.connection() as connection:
            return await _read(connection, number, groups)

    async def cancel(
        self, number: UUID, groups: frozenset[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Do nothing more of an action, audited; a finished one stays as it is.

        None if a caller of these groups may not see it.
        """
        bound = {"id": number, "groups": None if groups is None else sorted(groups)}
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            if await rows_of(connection, SQL["cancel"], bound):
                await audit(connection, "bulk.cancel", str(number), None, action)
            return await _read(connection, number, groups)

    async def advance(self) -> bool:
        """Process the next chunk of an unfinished action; False if no action waits."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            claimed = await rows_of(connection, SQL["claim"], {"chunk": CHUNK})
            if not claimed:
                return False
            row = claimed[0]
            half_ids = [HalfId(each) for each in row["half_ids"]]
            statuses = await read_statuses(connection, half_ids, with_publication=False)
            failures = await _apply(connection, row, half_ids, statuses)
            await connection.execute(SQL["advance"], _progress(row, half_ids, statuses, failures))
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


async def _store(
    connection: AsyncConnection, order: BulkOrder, half_ids: Sequence[HalfId]
) -> BulkAction | None:
    action = order.action
    row = {
        "action": order.kind.value,
        "decision": order.decision.value if order.decision else None,
        "groups": None if order.groups is None else sorted(order.groups),
        "operator": action.operator,
        "reason": action.reason,
        "key_id": action.key_id,
        "half_ids": list(half_ids),
        "delay_seconds": order.delay_seconds,
    }
    [begun] = await rows_of(connection, SQL["begin"], row)
    number = begun["id"]
    detail = {"filter": dict(order.asked), "matched": len(half_ids)}
    await audit(connection, f"bulk.{order.kind}", str(number), None, action, detail)
    return await _read(connection, number, order.groups)


async def _read(
    connection: AsyncConnection, number: UUID, groups: frozenset[int] | None
) -> BulkAction | None:
    asked = {"id": number, "groups": None if groups is None else sorted(groups)}
    found = await rows_of(connection, SQL["read"], asked)
    return BulkAction(**found[0]) if found else None


async def _apply(
    connection: AsyncConnection,
    row: Mapping[str, Any],
    half_ids: Sequence[HalfId],
    statuses: Mapping[HalfId, MessageStatus],
) -> Failures:
    """Process one chunk; return the failures, each with the slug of a single call."""
    action = OperatorAction(operator=row["operator"], reason=row["reason"], key_id=row["key_id"])
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
    await force_all(connection, ends, action)
    after = await read_statuses(connection, [end.half_id for end in ends], with_publication=False)
    return {
        half_id: "already-ended"
        for half_id, status in after.items()
        if contradicts(status.state, decision)
    }


def _progress(
    row: Mapping[str, Any],
    half_ids: Sequence[HalfId],
    statuses: Mapping[HalfId, MessageStatus],
    failures: Failures,
) -> dict[str, Any]:
    shown = [
        {
            "message_id": str(statuses[each].message_id) if each in statuses else None,
            "code": code,
        }
        for each, code in sorted(failures.items())
    ]
    return {
        "id": row["id"],
        "done": len(half_ids) - len(failures),
        "failed": len(failures),
        "failures": Jsonb(shown[: FAILURES_KEPT - row["named"]]),
        "last": row["position"] + len(half_ids) >= row["matched"],
    }
