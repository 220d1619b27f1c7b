"""The ids of the messages that wait, as statements of SQLAlchemy Core: one queue each. No I/O."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Integer,
    Select,
    Text,
    cast,
    column,
    func,
    literal,
    select,
    true,
    tuple_,
)

from outbox.messages.message_id import SHARDS
from outbox.postgres.schema.tables import commit_log, half_message, held_record, progress


def unswept() -> Select[Any]:
    """Return halves after the sweep's cursor."""
    swept = select(progress.c.position).where(progress.c.name == "sweep").scalar_subquery()
    return select(half_message.c.half_id).where(half_message.c.half_id > func.coalesce(swept, 0))


def unpublished() -> Select[Any]:
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


def held() -> Select[Any]:
    """Return held records that are not published, dropped ones too."""
    return select(held_record.c.half_id).where(held_record.c.released_at.is_(None))


def unsettled() -> Select[Any]:
    """Return held records that an operator may still release or drop."""
    return held().where(held_record.c.dropped_at.is_(None))
