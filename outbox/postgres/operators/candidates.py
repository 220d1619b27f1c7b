"""Composes the statement that selects the half ids of a list, with SQLAlchemy Core. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    ScalarSelect,
    Select,
    Subquery,
    Table,
    cast,
    func,
    or_,
    select,
    true,
    union,
    union_all,
)

from outbox.messages.message import Resolution, State
from outbox.operators.message_view import NEVER_CHECKED, MessageFilter
from outbox.postgres.operators import queues
from outbox.postgres.schema.check_tables import check_attempt, check_queue, recheck
from outbox.postgres.schema.codes import DECIDED_BY_CODE, DECISION_CODE
from outbox.postgres.schema.tables import (
    half_message,
    op_message,
    parked_message,
    producer_group,
    topic,
    transaction_key,
)

SLICE_ROWS: Final = 20_000
"""The most halves that one page looks at to find matches."""

Queue = Sequence[Select[Any]]
"""The parts of a queue of half ids."""
_SHOWN: Final = (
    "half_id",
    "producer_group_id",
    "topic_id",
    "key",
    "tags",
    "prepared_at",
    "transaction_id",
    "traceparent",
)


def candidates(wanted: MessageFilter, queue: Queue | None) -> Select[Any]:
    """Return the statement that selects up to ``limit + 1`` half ids, newest first.

    It looks at the ids of ``looked_at``, and at no other message.
    """
    pool = _newest_halves(wanted) if queue is None else _rows_of(_first(queue, wanted))
    conditions = [*_own_conditions(wanted, pool), *_joined_conditions(wanted, pool)]
    return (
        select(pool.c.half_id)
        .where(*conditions)
        .order_by(pool.c.half_id.desc())
        .limit(wanted.limit + 1)
    )


def looked_at(wanted: MessageFilter, queue: Queue | None) -> Select[Any, Any]:
    """Return the statement that reads how many messages a page looked at, and the oldest id."""
    halves = [select(half_message.c.half_id)]
    ids = _first(halves if queue is None else queue, wanted).subquery("ids")
    return select(func.count().label("looked"), func.min(ids.c.half_id).label("last"))


def queue_of(wanted: MessageFilter) -> Queue | None:
    """Return what names the messages: their transaction id or a queue; None if nothing does.

    Some of the named messages may be in another state.
    """
    if wanted.transaction_id is not None:
        key = transaction_key.c
        groups = key.producer_group_id.in_(select(producer_group.c.id))
        return [select(key.half_id).where(groups, key.transaction_id == wanted.transaction_id)]
    by_state: dict[State | None, Queue] = {
        State.PREPARED: [queues.unswept(), select(check_queue.c.half_id)],
        State.PARKED: [select(parked_message.c.half_id)],
        State.COMMITTED: [queues.unpublished(), queues.held()],
    }
    return by_state.get(wanted.state)


def unpublished_at_most() -> Select[Any]:
    """Return the statement that counts unpublished messages, one more than a slice at most."""
    named = union_all(queues.unpublished(), queues.held()).limit(SLICE_ROWS + 1).subquery("named")
    return select(func.count().label("unpublished")).select_from(named)


def _newest_halves(wanted: MessageFilter) -> Subquery:
    """Return the newest halves below the cursor: a slice of them."""
    halves = select(*(half_message.c[name] for name in _SHOWN))
    if wanted.before is not None:
        halves = halves.where(half_message.c.half_id < wanted.before)
    return halves.order_by(half_message.c.half_id.desc()).limit(SLICE_ROWS).subquery("pool")


def _rows_of(half_ids: Select[Any]) -> Subquery:
    """Return the rows of some halves.

    The ids are sorted before their rows are looked up, so a page looks up little more than it
    shows, however many they are.
    """
    named = half_ids.subquery("named")
    mine = half_message.c.half_id == named.c.half_id
    columns = (half_message.c[name] for name in _SHOWN)
    found = select(*columns).where(mine).offset(0).correlate(named).lateral("found")
    shown = (named.c.half_id, *(found.c[name] for name in _SHOWN if name != "half_id"))
    return select(*shown).select_from(named.join(found, true())).subquery("pool")


def _first(queue: Queue, wanted: MessageFilter) -> Select[Any]:
    """Return the newest ids of a queue below the cursor: a slice of them.

    A condition here would be looked for through all the others, or let the planner sort them all.
    """
    parts = [_newest(each.subquery(), wanted).subquery() for each in queue]
    return _newest(union(*(select(part.c.half_id) for part in parts)).subquery(), wanted)


def _newest(ids: Subquery, wanted: MessageFilter) -> Select[Any]:
    """Return the newest ids below the cursor, as many as a slice has."""
    newest = select(ids.c.half_id).order_by(ids.c.half_id.desc()).limit(SLICE_ROWS)
    return newest if wanted.before is None else newest.where(ids.c.half_id < wanted.before)


def _own_conditions(wanted: MessageFilter, pool: Subquery) -> list[ColumnElement[bool]]:
    """Return the conditions on the half itself."""
    half = pool.c
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
    return (
        None if name is None else select(table.c.id).where(table.c.name == name).scalar_subquery()
    )


def _joined_conditions(wanted: MessageFilter, pool: Subquery) -> list[ColumnElement[bool]]:
    """Return the conditions on the op message and on the checks.

    Scalar subqueries are looked up by key for each candidate; a join may read whole tables.
    """
    conditions: list[ColumnElement[bool]] = []
    mine = op_message.c.half_id == pool.c.half_id
    decision = select(op_message.c.decision).where(mine).scalar_subquery()
    if wanted.state in (State.PREPARED, State.PARKED):
        conditions.append(decision.is_(None))
        parked = parked_message.c.half_id == pool.c.half_id, parked_message.c.resumed_at.is_(None)
        waits = select(parked_message.c.half_id).where(*parked).scalar_subquery()
        conditions.append(waits.is_not(None) if wanted.state is State.PARKED else waits.is_(None))
    elif wanted.state is not None:
        rolled_back = wanted.state is State.ROLLED_BACK
        wanted_end = Resolution.ROLLBACK if rolled_back else Resolution.COMMIT
        conditions.append(decision == DECISION_CODE[wanted_end])
    if wanted.decided_by is not None:
        decided_by = select(op_message.c.decided_by).where(mine).scalar_subquery()
        conditions.append(decided_by == DECIDED_BY_CODE[wanted.decided_by])
    return [*conditions, *_check_conditions(wanted, pool)]


def _check_conditions(wanted: MessageFilter, pool: Subquery) -> list[ColumnElement[bool]]:
    mine = check_attempt.c.half_id == pool.c.half_id
    conditions: list[ColumnElement[bool]] = []
    if wanted.min_checks is not None:
        conditions.append(_spent_checks(pool) >= wanted.min_checks)
    last = select(check_attempt).where(mine).order_by(check_attempt.c.look_id.desc()).limit(1)
    if wanted.last_outcome is not None:
        outcome = last.with_only_columns(check_attempt.c.outcome).scalar_subquery()
        never = wanted.last_outcome == NEVER_CHECKED
        conditions.append(outcome.is_(None) if never else outcome == wanted.last_outcome)
    if wanted.last_http_status is not None:
        status = last.with_only_columns(check_attempt.c.http_status).scalar_subquery()
        conditions.append(status == wanted.last_http_status)
    return conditions


def _spent_checks(pool: Subquery) -> ColumnElement[int]:
    """Return how many checks count: those since a recheck of a parked message, if there was one.

    Those of the current round do, whatever the clock was.
    """
    mine = recheck.c.half_id == pool.c.half_id
    rechecked = select(recheck.c.rechecked_at).where(mine).correlate(pool).scalar_subquery()
    current = select(recheck.c.round).where(mine).correlate(pool).scalar_subquery()
    counted = select(func.count()).where(
        check_attempt.c.half_id == pool.c.half_id,
        check_attempt.c.counted,
        or_(
            check_attempt.c.round == func.coalesce(current, 1),
            check_attempt.c.asked_at >= rechecked,
        ),
    )
    return counted.correlate(pool).scalar_subquery()
