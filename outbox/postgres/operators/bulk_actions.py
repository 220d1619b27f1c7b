"""Does to many messages what an operator may do to one; see BulkActions.

The matched ids are stored first and then processed in chunks. One commit has the effects of a
chunk, its audit rows and its place in the list. So after a crash another process continues, and
nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from outbox.errors import DatabaseUnavailable, MessageNotFound, NotHeld, NotRecheckable
from outbox.messages.message import DecidedBy, End, MessageStatus, Resolution
from outbox.messages.message_id import HalfId, Nonce, message_id_of
from outbox.messages.state_machine import contradicts
from outbox.operators.bulk_actions import BulkAction, BulkKind, BulkOrder
from outbox.operators.message_view import MessageFilter, OperatorAction
from outbox.postgres.messages.decisions import decide
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.audit_log import audit
from outbox.postgres.operators.held_admin import settle_held
from outbox.postgres.operators.message_browser import candidate_ids
from outbox.postgres.operators.operations import recheck_one
from outbox.postgres.operators.repairs import RepairOrder, enter_repair
from outbox.postgres.sessions.answer_limit import ANSWER_SECONDS
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import one_snapshot
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
CHUNK: Final = 100
SERVED_MAX: Final = 1000
FAILURES_KEPT: Final = 100

Failures = dict[HalfId, str]


class PostgresBulkActions:
    """The BulkActions on a pool of connections."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool
        self._served: dict[str, None] = {}
        """Whose actions this process advanced, the least recent first."""

    async def server_started_at(self) -> datetime:
        """Return when the server started; see BulkActions.server_started_at."""
        async with available(), self._pool.connection() as connection:
            [row] = await (await connection.execute(SQL["server_started_at"])).fetchall()
        started_at: datetime = row[0]
        return started_at

    async def match(
        self, kind: BulkKind, filters: Sequence[MessageFilter], at_most: int
    ) -> Sequence[HalfId]:
        """Return the ids that match; see BulkActions.match."""
        async with available(), self._pool.connection() as connection:
            with connection.answering_within(ANSWER_SECONDS):
                found = {
                    half_id
                    for wanted in filters
                    for half_id in await candidate_ids(
                        connection, wanted, at_most, held=kind.is_held
                    )
                }
        return sorted(found)[:at_most]

    async def match_named(
        self,
        kind: BulkKind,
        named: Collection[tuple[HalfId, Nonce]],
        groups: frozenset[int] | None,
    ) -> Sequence[HalfId]:
        """Return which messages the action takes; see BulkActions.match_named."""
        half_ids = sorted({half_id for half_id, _ in named})
        async with available(), self._pool.connection() as connection, one_snapshot(connection):
            statuses = await read_statuses(connection, half_ids, with_publication=False)
        return [
            status.half_id
            for half_id in half_ids
            if (status := statuses.get(half_id)) is not None
            and (half_id, status.nonce) in named
            and (groups is None or status.producer_group_id in groups)
            and kind.takes(status)
        ]

    async def begin(self, order: BulkOrder, half_ids: Sequence[HalfId]) -> UUID:
        """Store an order; see BulkActions.begin."""
        action = order.action
        row = {
            "action": order.kind.value,
            "decision": order.decision.value if order.decision else None,
            "groups": None if order.groups is None else sorted(order.groups),
            "operator": action.operator,
            "reason": action.reason,
            "key_id": action.key_id,
            "half_ids": list(half_ids),
            "rate": order.rate,
            "delay_seconds": order.delay_seconds,
        }
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            [server] = await (await connection.execute(SQL["server_started_at"])).fetchall()
            if order.server_started_at not in (None, server[0]):
                raise DatabaseUnavailable("another server has named the messages")
            [begun] = await (await connection.execute(SQL["begin"], row)).fetchall()
            detail = {"filter": dict(order.asked), "matched": len(half_ids)}
            await audit(connection, f"bulk.{order.kind}", str(begun[0]), None, action, detail)
        number: UUID = begun[0]
        return number

    async def get(self, number: UUID, groups: frozenset[int] | None) -> BulkAction | None:
        """Return the progress of an action; see BulkActions.get."""
        bound = None if groups is None else sorted(groups)
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["read"], {"id": number, "groups": bound})
            row = await cursor.fetchone()
        return None if row is None else BulkAction(**row)

    async def cancel(
        self, number: UUID, groups: frozenset[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Do nothing more of an action; see BulkActions.cancel."""
        return await self._turn("cancel", number, groups, action)

    async def resume(
        self, number: UUID, groups: frozenset[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Go on with a cancelled action; see BulkActions.resume."""
        return await self._turn("resume", number, groups, action)

    async def _turn(
        self, how: str, number: UUID, groups: frozenset[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Cancel or resume an action, with its audit row; return it as it is then."""
        bound = {"id": number, "groups": None if groups is None else sorted(groups)}
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            cursor = await connection.execute(SQL[how], bound)
            if await cursor.fetchone() is not None:
                await audit(connection, f"bulk.{how}", str(number), None, action)
        return await self.get(number, groups)

    async def advance(self) -> bool:
        """Process the next chunk of an action; see BulkActions.advance."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            row = await self._claim(connection)
            if row is None:
                return False
            half_ids = [HalfId(each) for each in row["half_ids"]]
            statuses = await read_statuses(connection, half_ids, with_publication=False)
            failures = await _apply(connection, row, half_ids, statuses)
            await connection.execute(SQL["advance"], _progress(row, half_ids, statuses, failures))
        return True

    async def _claim(self, connection: AsyncConnection) -> Mapping[str, Any] | None:
        """Lock an action and return its next chunk; tenants take turns."""
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(SQL["claim"], {"served": [*self._served]})
            claimed = await cursor.fetchone()
            if claimed is None:
                return None
            self._served.pop(claimed["owner"], None)
            self._served[claimed["owner"]] = None
            if len(self._served) > SERVED_MAX:
                del self._served[next(iter(self._served))]
            await cursor.execute(SQL["chunk"], {"id": claimed["id"], "chunk": CHUNK})
            return await cursor.fetchone()


async def _apply(
    connection: AsyncConnection,
    row: Mapping[str, Any],
    half_ids: Sequence[HalfId],
    statuses: Mapping[HalfId, MessageStatus],
) -> Failures:
    """Process one chunk; return the failures, each with the slug of a single call."""
    action = OperatorAction(operator=row["operator"], reason=row["reason"], key_id=row["key_id"])
    known = [statuses[half_id] for half_id in half_ids if half_id in statuses]
    missing = dict.fromkeys((each for each in half_ids if each not in statuses), _NOT_FOUND)
    if row["action"] == BulkKind.FORCE_END:
        return missing | await _force_end(connection, Resolution(row["decision"]), known, action)
    failures: Failures = {}
    for place, status in enumerate(known, 1):
        try:
            if row["action"] == BulkKind.RECHECK:
                await recheck_one(connection, status, place, action)
            elif row["action"] == BulkKind.REPUBLISH:
                due_at = _due_at(row, row["position"] + place)
                repair = RepairOrder(number=row["id"], due_at=due_at, action=action)
                if not await enter_repair(connection, repair, status.half_id, status.nonce):
                    failures[status.half_id] = "not-repairable"
            else:
                kind = BulkKind(row["action"])
                await settle_held(connection, kind, status.half_id, status.nonce, action)
        except NotRecheckable:
            failures[status.half_id] = "not-recheckable"
        except (NotHeld, MessageNotFound):
            failures[status.half_id] = "not-held"
    return missing | failures


def _due_at(row: Mapping[str, Any], place: int) -> datetime:
    """Return when the message at that place of an action (the first is 1) may be published."""
    begun: datetime = row["paced_from"]
    return begun if row["rate"] is None else begun + timedelta(seconds=(place - 1) / row["rate"])


_NOT_FOUND: Final = "message-not-found"


async def _force_end(
    connection: AsyncConnection,
    decision: Resolution,
    known: Sequence[MessageStatus],
    action: OperatorAction,
) -> Failures:
    """Decide in the operator's name, all in one statement: a shard has one commit row a flush."""
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
    decided = await decide(connection, ends, racing=True)
    after = await read_statuses(connection, [end.half_id for end in ends], with_publication=False)
    for place, end in enumerate(ends):
        detail = {"decision": decision.value, "applied": place in decided}
        target = str(message_id_of(end.half_id, end.nonce))
        await audit(connection, "message.force_end", target, end.half_id, action, detail)
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
