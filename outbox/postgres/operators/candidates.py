"""Composes the statement that selects the half ids of a list, with SQLAlchemy Core. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Select,
    Subquery,
    Table,
    cast,
    exists,
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

_FROM_QUEUES: Final = frozenset({State.PREPARED, State.PARKED, State.COMMITTED})
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


def candidates(wanted: MessageFilter, *, sliced: bool = False) -> Select[Any]:
    """Return the statement that selects up to ``limit + 1`` half ids, newest first.

    It looks at ``SLICE_ROWS`` messages at most, where these may be many. ``sliced`` chooses from a
    slice of the newest halves even where a queue names them.
    """
    if sliced or reads_slice(wanted):
        return _chosen(wanted, _slice(wanted))
    named = _newest(wanted) if reads_newest(wanted) else _named(wanted)
    return _chosen(wanted, _rows_of(named, wanted))


def all_candidates(wanted: MessageFilter, *, held: bool) -> Select[Any]:
    """Return the statement that selects half ids as ``candidates`` does, of every open message.

    ``held`` chooses from the records that Kafka refuses and that are not settled.
    """
    if held:
        return _chosen(wanted, _rows_of(queues.unsettled(), wanted))
    if reads_slice(wanted):
        return _chosen(wanted, _slice(wanted))
    return _chosen(wanted, _rows_of(_named(wanted), wanted))


def _chosen(wanted: MessageFilter, pool: Subquery) -> Select[Any]:
    """Return the newest of the rows that match."""
    conditions = [*_own_conditions(wanted, pool), *_joined_conditions(wanted, pool)]
    return (
        select(pool.c.half_id)
        .where(*conditions)
        .order_by(pool.c.half_id.desc())
        .limit(wanted.limit + 1)
    )


def slice_end(wanted: MessageFilter) -> Select[Any, Any, Any]:
    """Return the statement that reads the end of a slice."""
    part = _slice(wanted)
    oldest = part.c.prepared_at
    return select(
        func.count().label("looked"),
        func.min(part.c.half_id).label("last"),
        func.min(oldest).label("back_to"),
    )


def newest_end(wanted: MessageFilter) -> Select[Any, Any, Any]:
    """Return the statement that reads how far a page of a queue looked, as ``slice_end`` does."""
    ids = _newest(wanted).subquery("ids")
    end = select(func.count().label("looked"), func.min(ids.c.half_id).label("last")).subquery(
        "end"
    )
    found = union(
        *(
            select(table.c.prepared_at).where(table.c.half_id == end.c.last).correlate(end)
            for table in (half_message, parked_message)
        )
    ).lateral("found")
    joined = end.outerjoin(found, true())
    return select(end.c.looked, end.c.last, found.c.prepared_at.label("back_to")).select_from(
        joined
    )


def unpublished_at_most() -> Select[Any]:
    """Return the statement that counts unpublished messages, one more than a slice at most."""
    named = union_all(queues.unpublished(), queues.held()).limit(SLICE_ROWS + 1).subquery("named")
    return select(func.count().label("unpublished")).select_from(named)


def reads_slice(wanted: MessageFilter) -> bool:
    """Return whether neither a queue nor a key names the messages."""
    return wanted.transaction_id is None and wanted.state not in _FROM_QUEUES


def reads_newest(wanted: MessageFilter) -> bool:
    """Return whether a queue that can be read by the order of its messages names them."""
    return wanted.transaction_id is None and wanted.state in (State.PREPARED, State.PARKED)


def _rows_of(half_ids: Select[Any], wanted: MessageFilter) -> Subquery:
    """Return the rows of some halves.

    The ids are sorted before their rows are looked up, so a page looks up little more than it
    shows, however many they are.
    """
    ids = half_ids.subquery("ids")
    below = wanted.before if wanted.before is not None else (1 << 63) - 1
    newest = select(ids.c.half_id).where(ids.c.half_id < below).order_by(ids.c.half_id.desc())
    named = newest.offset(0).subquery("named")
    found = union(_by_key(half_message, named), _by_key(parked_message, named)).lateral("found")
    shown = (named.c.half_id, *(found.c[name] for name in _SHOWN if name != "half_id"))
    return select(*shown).select_from(named.join(found, true())).subquery("pool")


def _by_key(table: Table, named: Subquery) -> Select[Any]:
    """Return the row of a named half; the union of two such keeps the look-up by key."""
    columns = (table.c[name] for name in _SHOWN)
    return select(*columns).where(table.c.half_id == named.c.half_id).correlate(named)


def _slice(wanted: MessageFilter) -> Subquery:
    """Return the newest halves below the cursor."""
    halves = select(*(half_message.c[name] for name in _SHOWN))
    if wanted.before is not None:
        halves = halves.where(half_message.c.half_id < wanted.before)
    return halves.order_by(half_message.c.half_id.desc()).limit(SLICE_ROWS).subquery("pool")


def _named(wanted: MessageFilter) -> Select[Any]:
    """Return the half ids of the transaction id, or of the queue for the state."""
    if wanted.transaction_id is not None:
        return select(transaction_key.c.half_id).where(
            transaction_key.c.producer_group_id.in_(select(producer_group.c.id)),
            transaction_key.c.transaction_id == wanted.transaction_id,
        )
    if wanted.state is State.PARKED:
        return select(parked_message.c.half_id).where(parked_message.c.resumed_at.is_(None))
    if wanted.state is State.COMMITTED:
        return select(union(queues.unpublished(), queues.held()).subquery("unpublished").c.half_id)
    return select(union(queues.unswept(), queues.queued()).subquery("undecided").c.half_id)


def _newest(wanted: MessageFilter) -> Select[Any]:
    """Return the newest half ids of the queue for the state, below the cursor: a slice of them.

    Some are in another state. A condition here would be looked for through all the others, or let
    the planner sort all of them.
    """
    waiting = [select(parked_message.c.half_id)]
    if wanted.state is State.PREPARED:
        waiting = [queues.unswept(), select(check_queue.c.half_id)]
    parts = [_first(queue.subquery(), wanted).subquery() for queue in waiting]
    return _first(union(*(select(part.c.half_id) for part in parts)).subquery(), wanted)


def _first(ids: Subquery, wanted: MessageFilter) -> Select[Any]:
    """Return the newest ids below the cursor, as many as a slice has."""
    newest = select(ids.c.half_id).order_by(ids.c.half_id.desc()).limit(SLICE_ROWS)
    return newest if wanted.before is None else newest.where(ids.c.half_id < wanted.before)


def _own_conditions(wanted: MessageFilter, pool: Subquery) -> list[ColumnElement[bool]]:
    """Return the conditions on the half itself."""
    columns = pool.c
    given: list[tuple[object, Callable[[], ColumnElement[bool]]]] = [
        (wanted.prepared_from, lambda: columns.prepared_at >= wanted.prepared_from),
        (wanted.prepared_to, lambda: columns.prepared_at < wanted.prepared_to),
        (wanted.key, lambda: columns.key == wanted.key),
        (wanted.tag, lambda: columns.tags.contains([wanted.tag])),
        (wanted.trace_id, lambda: _trace_id(columns.traceparent) == wanted.trace_id),
        (wanted.transaction_id, lambda: columns.transaction_id == wanted.transaction_id),
        (wanted.producer_group, lambda: columns.producer_group_id == _group_id(wanted)),
        (wanted.topic, lambda: columns.topic_id == _topic_id(wanted)),
    ]
    conditions = [condition() for value, condition in given if value is not None]
    if wanted.groups is not None:
        bound = cast(sorted(wanted.groups), ARRAY(Integer))
        conditions.append(columns.producer_group_id == func.any(bound))
    return conditions


def _trace_id(traceparent: ColumnElement[str]) -> ColumnElement[str]:
    """Return the second part of a traceparent: `version-trace-span-flags`."""
    return func.substr(traceparent, 4, 32)


def _joined_conditions(wanted: MessageFilter, pool: Subquery) -> list[ColumnElement[bool]]:
    """Return the conditions on the op message and on the checks.

    Scalar subqueries are looked up by key for each candidate; a join may read whole tables.
    """
    conditions: list[ColumnElement[bool]] = []
    mine = op_message.c.half_id == pool.c.half_id
    decision = select(op_message.c.decision).where(mine).scalar_subquery()
    if wanted.state in (State.PREPARED, State.PARKED):
        conditions.append(decision.is_(None))
        conditions.append(_is_parked(pool) == (wanted.state is State.PARKED))
    if wanted.state is State.ROLLED_BACK:
        conditions.append(decision == DECISION_CODE[Resolution.ROLLBACK])
    if wanted.state in (State.COMMITTED, State.PUBLISHED):
        conditions.append(decision == DECISION_CODE[Resolution.COMMIT])
    if wanted.decided_by is not None:
        decided_by = select(op_message.c.decided_by).where(mine).scalar_subquery()
        conditions.append(decided_by == DECIDED_BY_CODE[wanted.decided_by])
    return [*conditions, *_check_conditions(wanted, pool)]


def _is_parked(pool: Subquery) -> ColumnElement[bool]:
    mine = parked_message.c.half_id == pool.c.half_id
    return exists().where(mine, parked_message.c.resumed_at.is_(None))


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


def _group_id(wanted: MessageFilter) -> Any:
    name = producer_group.c.name == wanted.producer_group
    return select(producer_group.c.id).where(name).scalar_subquery()


def _topic_id(wanted: MessageFilter) -> Any:
    return select(topic.c.id).where(topic.c.name == wanted.topic).scalar_subquery()
