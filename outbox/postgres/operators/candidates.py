"""Composes the statements that find the half ids of a list, with SQLAlchemy Core. No I/O.

A queue is the ids of messages that wait for something, or of all halves.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    Text,
    cast,
    column,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    union,
)

from outbox.messages.message import Resolution, State
from outbox.messages.message_id import SHARDS
from outbox.operators.message_view import NEVER_CHECKED, MessageFilter
from outbox.postgres.schema.check_tables import check_attempt, check_queue, recheck
from outbox.postgres.schema.codes import DECIDED_BY_CODE, DECISION_CODE
from outbox.postgres.schema.tables import (
    commit_log,
    half_message,
    held_record,
    op_message,
    parked_message,
    producer_group,
    progress,
    topic,
    transaction_key,
)

SLICE_ROWS: Final = 20_000
"""The most halves that one page looks at to find matches."""

Queue = Sequence[Select[Any]]
"""The parts of a queue of half ids."""
Conditions = list[ColumnElement[bool]]


def candidates(wanted: MessageFilter, queue: Queue) -> Select[Any]:
    """Return the statement that selects up to ``limit + 1`` half ids, newest first.

    It looks at the ids of ``looked_at``, and at no other message. They are sorted before their rows
    are looked up, so a page looks up little more than it shows, however many they are.
    """
    ids = _slice(queue, wanted)
    mine = half_message.c.half_id == ids.c.half_id
    half = select(half_message).where(mine).offset(0).correlate(ids).lateral("half")
    conditions = [
        *_half_conditions(wanted, half.c),
        *_end_conditions(wanted, ids),
        *_check_conditions(wanted, ids),
    ]
    found = select(ids.c.half_id).select_from(ids.join(half, true())).where(*conditions)
    return found.order_by(ids.c.half_id.desc()).limit(wanted.limit + 1)


def looked_at(wanted: MessageFilter, queue: Queue) -> Select[Any]:
    """Return the statement that reads where the slice of a page ends.

    ``looked`` is its number of messages, ``last`` the oldest one, prepared at ``back_to``.
    """
    ids = _slice(queue, wanted)
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
        return [select(key.half_id).where(groups, key.transaction_id == wanted.transaction_id)]
    if wanted.state is State.PREPARED:
        return [_unswept(), select(check_queue.c.half_id)]
    if wanted.state is State.PARKED:
        return [select(parked_message.c.half_id)]
    if wanted.state is State.COMMITTED:
        return [_unpublished(), _held()]
    return [select(half_message.c.half_id)]


def unsettled() -> Select[Any]:
    """Return held records that an operator may still release or drop."""
    return _held().where(held_record.c.dropped_at.is_(None))


def _held() -> Select[Any]:
    """Return held records that are not published, dropped ones too."""
    return select(held_record.c.half_id).where(held_record.c.released_at.is_(None))


def _unswept() -> Select[Any]:
    """Return halves after the sweep's cursor."""
    swept = select(progress.c.position).where(progress.c.name == "sweep").scalar_subquery()
    return select(half_message.c.half_id).where(half_message.c.half_id > func.coalesce(swept, 0))


def _unpublished() -> Select[Any]:
    """Return committed halves that the relay of their shard has not passed yet.

    Each shard's position bounds its range of the commit log's key; no older row is read.
    """
    shard = func.generate_series(0, SHARDS - 1).table_valued(column("shard", Integer), name="s")
    shard = shard.render_derived(name="s")
    name = literal("relay:") + cast(shard.c.shard, Text)
    position = func.coalesce(progress.c.position, 0)
    flushes = (
        select(commit_log.c.xid, commit_log.c.half_ids)
        .where(commit_log.c.shard == shard.c.shard, commit_log.c.xid >= position)
        .offset(0)
        .correlate(shard, progress)
        .lateral("flushes")
    )
    ids = func.unnest(flushes.c.half_ids).table_valued(
        column("half_id", BigInteger), with_ordinality="n", name="ids"
    )
    ids = ids.render_derived(name="ids")
    relayed = shard.outerjoin(progress, progress.c.name == name)
    passed = tuple_(position, func.coalesce(progress.c.position_n, 0))
    return (
        select(ids.c.half_id)
        .select_from(relayed.join(flushes, true()).join(ids, true()))
        .where(tuple_(flushes.c.xid, ids.c.n) > passed)
    )


def _slice(queue: Queue, wanted: MessageFilter) -> Subquery:
    """Return the newest ids of a queue below the cursor: a slice of them.

    A condition here would be looked for through all the others, or let the planner sort them all.
    """
    parts = [select(_newest(each.subquery(), wanted).c.half_id) for each in queue]
    return _newest(union(*parts).subquery(), wanted) if parts[1:] else parts[0].subquery()


def _newest(ids: Subquery, wanted: MessageFilter) -> Subquery:
    """Return the newest ids below the cursor, as many as a slice has."""
    newest = select(ids.c.half_id).order_by(ids.c.half_id.desc()).limit(SLICE_ROWS)
    if wanted.before is not None:
        newest = newest.where(ids.c.half_id < wanted.before)
    return newest.subquery()


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
