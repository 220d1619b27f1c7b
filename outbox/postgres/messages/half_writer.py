"""Appends half messages and claims their transaction ids, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.half_rows import COPY_BEGIN, COPY_END, copy_row
from outbox.postgres.sessions.statements import load

SQL: Final = load(__name__)
COPY_HALVES: Final = SQL["copy_halves"]


async def claim_transaction_ids(
    cursor: psycopg.AsyncCursor[Any], halves: Sequence[HalfMessage]
) -> frozenset[HalfId]:
    """Claim the transaction ids of the halves that have one; return the half ids that won."""
    keyed = [half for half in halves if half.message.transaction_id is not None]
    if not keyed:
        return frozenset()
    await cursor.execute(
        SQL["claim_transaction_ids"],
        {
            "groups": [half.message.producer_group_id for half in keyed],
            "transaction_ids": [half.message.transaction_id for half in keyed],
            "half_ids": [half.half_id for half in keyed],
        },
    )
    return frozenset(HalfId(row[0]) for row in await cursor.fetchall())


async def append_halves(cursor: psycopg.AsyncCursor[Any], halves: Iterable[HalfMessage]) -> None:
    """Append the halves by COPY, in the order given."""
    async with cursor.copy(COPY_HALVES) as copy:
        await copy.write(copy_data(halves))


def copy_data(halves: Iterable[HalfMessage]) -> bytes:
    """Return the data of a COPY that appends the halves, in the order given."""
    return b"".join((COPY_BEGIN, *map(copy_row, halves), COPY_END))
