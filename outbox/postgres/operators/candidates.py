"""Composes the statements that find the half ids of a list, with SQLAlchemy Core. No I/O.

A queue is the ids of messages that wait for something, or of all halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Integer,
    ScalarSelect,
    Select,
    Subquery,
    Table,
    TextualSelect,
    cast,
    column,
    func,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import distinct_on

from outbox.messages.message import Resolution, State
from outbox.operators.message_view import NEVER_CHECKED, MessageFilter
from outbox.postgres.schema.check_tables import check_attempt, recheck
from outbox.postgres.schema.codes import DECIDED_BY_CODE, DECISION_CODE
from outbox.postgres.schema.tables import (
    half_message,
    op_message,
    parked_message,
    producer_group,
    topic,
    transaction_key,
)
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
SLICE_ROWS: Final = 20_000
"""The most halves that one page looks at to find matches."""

Queue = Select[Any] | TextualSelect
"""A queue of half ids; an id may be in it twice."""
Conditions = list[ColumnElement[bool]]
_QUEUES: Final[Mapping[State | None, str]] = {
    State.PREPARED: "undecided",
    State.PARKED: "parked",
    State.COMMITTED: "unpublished",
}


def candidates(wanted: MessageFilter, waiting: Queue) -> Select[Any]:
    """Return the statement that selects up to ``limit + 1`` half ids, newest first.

    It looks at the ids of ``looked_at``, and at no other message. They are sorted before their rows
    are looked up, so a page looks up little more than it shows, however many they are.
    """
    ids = _slice(waiting, wanted)
    mine = half_message.c.half_id == ids.c.half_id
    half = select(half_message).where(mine).offset(0).correlate(ids).lateral("half")
    conditions = [
        *_half_conditions(wanted, half.c),
        *_end_conditions(wanted, ids),
        *_check_conditions(wanted, ids),
    ]
    found = select(ids.c.half_id).select_from(ids.join(half, true())).where(*conditions)
    return found.order_by(ids.c.half_id.desc()).limit(wanted.limit + 1)


def looked_at(wanted: MessageFilter, waiting: Queue) -> Select[Any]:
    """Return the statement that reads where the slice of a page ends.

    ``looked`` is its number of messages, ``last`` the oldest one, prepared at ``back_to``.
    """
    ids = _slice(waiting, wanted)
    end = select(func.count().label("looked"), func.min(ids.c.half_id).label("last")).subquery()
    prepared_at = select(half_message.c.prepared_at).where(half_message.c.half_id == end.c.last)
    return select(end, prepared_at.scalar_subquery().label("back_to"))


def queue_of(wanted: MessageFilter) -> Queue:
    """Return what names the messages: their transaction id, or the queue of their state.

    Some of the named messages may be in another state.
    """
    if wanted.transaction_id is not None:
        key = transaction_key.c
        groups = key.producer_group_id.in_(select(producer_group.c.id))
        return select(key.half_id).where(groups, key.transaction_id == wanted.transaction_id)
    return queue(_QUEUES.get(wanted.state, "all"))


def queue(name: str) -> Queue:
    """Return a queue by the name of its statement."""
    return text(SQL[name]).columns(column("half_id", BigInteger))


def _slice(waiting: Queue, wanted: MessageFilter) -> Subquery:
    """Return the newest ids of a queue below the cursor: a slice of them.

    A condition here would be looked for through all the others, or let the planner sort them all;
    without ON, DISTINCT may hash them all.
    """
    named = waiting.subquery("named").c.half_id
    newest = select(named).ext(distinct_on(named)).order_by(named.desc()).limit(SLICE_ROWS)
    if wanted.before is not None:
        newest = newest.where(named < wanted.before)
    return newest.subquery("ids")


def _half_conditions(wanted: MessageFilter, half: Any) -> Conditions:
    """Return the conditions on the half itself, by its columns."""
    trace_id = func.substr(half.traceparent, 4, 32)  # `version-trace-span-flags`
    equal: list[tuple[ColumnElement[Any], Any]] = [
        (half.key, wanted.key),
        (trace_id, wanted.trace_id),
        (half.transaction_id, wanted.transaction_id),
        (half.producer_group_id, _id_of(producer_group, wanted.producer_group)),
        (half.topic_id, _id_of(topic, wanted.topic)),
    ]
    conditions = [column == value for column, value in equal if value is not None]
    if wanted.prepared_from is not None:
        conditions.append(half.prepared_at >= wanted.prepared_from)
    if wanted.prepared_to is not None:
        conditions.append(half.prepared_at < wanted.prepared_to)
    if wanted.tag is not None:
        conditions.append(half.tags.contains([wanted.tag]))
    if wanted.groups is not None:
        bound = cast(sorted(wanted.groups), ARRAY(Integer))
        conditions.append(half.producer_group_id == func.any(bound))
    return conditions


def _id_of(table: Table, name: str | None) -> ScalarSelect[Any] | None:
    """Return the id of a group or a topic, as part of a statement."""
    if name is None:
        return None
    return select(table.c.id).where(table.c.name == name).scalar_subquery()


def _end_conditions(wanted: MessageFilter, ids: Subquery) -> Conditions:
    """Return the conditions on the op message and on the parking.

    Scalar subqueries are looked up by key for each candidate; a join may read whole tables.
    """
    conditions: Conditions = []
    op = select(op_message).where(op_message.c.half_id == ids.c.half_id)
    decision = op.with_only_columns(op_message.c.decision).scalar_subquery()
    if wanted.state in (State.PREPARED, State.PARKED):
        parked = parked_message.c
        mine = parked.half_id == ids.c.half_id, parked.resumed_at.is_(None)
        waits = select(parked.half_id).where(*mine).scalar_subquery()
        is_parked = waits.is_not(None) if wanted.state is State.PARKED else waits.is_(None)
        conditions += [decision.is_(None), is_parked]
    elif wanted.state is not None:
        rolled_back = wanted.state is State.ROLLED_BACK
        wanted_end = Resolution.ROLLBACK if rolled_back else Resolution.COMMIT
        conditions.append(decision == DECISION_CODE[wanted_end])
    if wanted.decided_by is not None:
        decided_by = op.with_only_columns(op_message.c.decided_by).scalar_subquery()
        conditions.append(decided_by == DECIDED_BY_CODE[wanted.decided_by])
    return conditions


def _check_conditions(wanted: MessageFilter, ids: Subquery) -> Conditions:
    """Return the conditions on the checks, looked up by key for each candidate."""
    checks = check_attempt.c
    mine = checks.half_id == ids.c.half_id
    conditions: Conditions = []
    if wanted.min_checks is not None:
        conditions.append(_spent_checks(ids) >= wanted.min_checks)
    last = select(check_attempt).where(mine).order_by(checks.look_id.desc()).limit(1)
    if wanted.last_outcome is not None:
        outcome = last.with_only_columns(checks.outcome).scalar_subquery()
        never = wanted.last_outcome == NEVER_CHECKED
        conditions.append(outcome.is_(None) if never else outcome == wanted.last_outcome)
    if wanted.last_http_status is not None:
        status = last.with_only_columns(checks.http_status).scalar_subquery()
        conditions.append(status == wanted.last_http_status)
    return conditions


def _spent_checks(ids: Subquery) -> ColumnElement[int]:
    """Return how many checks count: those since a recheck of a parked message, if there was one.

    Those of the current round do, whatever the clock was.
    """
    checks = check_attempt.c
    again = select(recheck).where(recheck.c.half_id == ids.c.half_id).correlate(ids)
    rechecked_at = again.with_only_columns(recheck.c.rechecked_at).scalar_subquery()
    current = again.with_only_columns(recheck.c.round).scalar_subquery()
    counted = select(func.count()).where(
        checks.half_id == ids.c.half_id,
        checks.counted,
        or_(checks.round == func.coalesce(current, 1), checks.asked_at >= rechecked_at),
    )
    return counted.correlate(ids).scalar_subquery()
