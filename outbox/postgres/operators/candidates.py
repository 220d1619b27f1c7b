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
    FromClause,
    Integer,
    ScalarSelect,
    Select,
    Subquery,
    Table,
    Text,
    TextualSelect,
    cast,
    column,
    func,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import distinct_on

from outbox.messages.message import State
from outbox.operators.message_view import MessageFilter
from outbox.postgres.schema.tables import (
    half_message,
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
_FACTS: Final = (
    *(half_message.c[name] for name in ("key", "transaction_id", "producer_group_id", "topic_id")),
    *(half_message.c[name] for name in ("prepared_at", "tags")),
    *(column(name, Text) for name in ("trace_id", "state", "decided_by", "last_outcome")),
    *(column(name, BigInteger) for name in ("last_http_status", "checks")),
)
"""What the statement ``half`` returns, with the types."""
_QUEUES: Final[Mapping[State | None, str]] = {
    State.PREPARED: "undecided",
    State.PARKED: "parked",
    State.COMMITTED: "unpublished",
}


def candidates(wanted: MessageFilter, waiting: Queue) -> Select[Any]:
    """Return the statement that selects up to ``limit + 1`` half ids, newest first.

    It looks at a slice of the queue, and at no other message. They are sorted before their rows
    are looked up, so a page looks up little more than it shows, however many they are.
    """
    ids = _slice(waiting, wanted)
    half = text(SQL["half"]).columns(*_FACTS).lateral("half")
    found = select(ids.c.half_id).select_from(ids.join(half, true()))
    found = found.where(*_conditions(wanted, half)).order_by(ids.c.half_id.desc())
    return found.limit(wanted.limit + 1)


def end_of_slice(wanted: MessageFilter, waiting: Queue) -> Select[Any]:
    """Return the statement that reads where a full slice ends; no row if the queue ends in it.

    ``next_before`` is its oldest message, prepared at ``searched_back_to``.
    """
    half_id = _slice(waiting, wanted).c.half_id
    end = select(half_id).order_by(half_id.desc()).offset(SLICE_ROWS - 1).subquery().c.half_id
    prepared_at = select(half_message.c.prepared_at).where(half_message.c.half_id == end)
    return select(end.label("next_before"), prepared_at.scalar_subquery().label("searched_back_to"))


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


def _conditions(wanted: MessageFilter, half: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions on a half and what was done to it."""
    stored = half.c
    equal = {
        "state": State.COMMITTED if wanted.state is State.PUBLISHED else wanted.state,
        "key": wanted.key,
        "trace_id": wanted.trace_id,
        "transaction_id": wanted.transaction_id,
        "producer_group_id": _id_of(producer_group, wanted.producer_group),
        "topic_id": _id_of(topic, wanted.topic),
        "decided_by": wanted.decided_by,
        "last_outcome": wanted.last_outcome,
        "last_http_status": wanted.last_http_status,
    }
    conditions = [stored[name] == value for name, value in equal.items() if value is not None]
    if wanted.min_checks is not None:
        conditions.append(stored.checks >= wanted.min_checks)
    if wanted.prepared_from is not None:
        conditions.append(stored.prepared_at >= wanted.prepared_from)
    if wanted.prepared_to is not None:
        conditions.append(stored.prepared_at < wanted.prepared_to)
    if wanted.tag is not None:
        conditions.append(stored.tags.contains([wanted.tag]))
    if wanted.groups is not None:
        bound = cast(wanted.groups, ARRAY(Integer))
        conditions.append(stored.producer_group_id == func.any(bound))
    return conditions


def _id_of(table: Table, name: str | None) -> ScalarSelect[Any] | None:
    """Return the id of a group or a topic, as part of a statement."""
    if name is None:
        return None
    return select(table.c.id).where(table.c.name == name).scalar_subquery()
