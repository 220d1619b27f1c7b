"""Lists messages by the filters that people compose, newest first, and never scans history.

A page looks at a slice of a queue: a bounded number of its messages below the cursor. It reports
where the slice ends, and the next page continues from there. Undecided, parked and unpublished
messages have queues; every other filter looks at the newest halves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from outbox.errors import MessageNotFound
from outbox.messages.message import MessageStatus, OpMessage, State
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.operators.message_view import (
    GroupCheck,
    GroupChecks,
    ListPage,
    MessageFilter,
    MessageResource,
    header_values,
    text_or_base64,
)
from outbox.postgres.messages.half_rows import bounds, headers_if_whole
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.candidates import (
    UNSETTLED,
    candidates,
    end_of_slice,
    parameters_of,
    queue_of,
)
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.reads import one_snapshot, read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
CHECKED_ROWS: Final = 5_000
"""The most checks that are read to find those of a group."""
UNDECIDED: Final = dict.fromkeys(OpMessage.__struct_fields__)


class PostgresMessageBrowser:
    """Lists and filters of messages. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def page(self, wanted: MessageFilter) -> ListPage[MessageResource]:
        """Return the newest messages that match."""
        async with self._reading() as connection:
            found = await _search(connection, wanted, queue_of(wanted))
            messages = await _read(connection, found.data)
        shown = [each for each in messages if wanted.state in (None, each.state)]
        return ListPage(
            data=shown, next_before=found.next_before, searched_back_to=found.searched_back_to
        )

    async def named(self, half_ids: Sequence[HalfId]) -> list[MessageResource]:
        """Return the current state of messages in the order asked; unknown ids are missing."""
        async with self._reading() as connection:
            return await _read(connection, half_ids)

    async def get(
        self, half_id: HalfId, nonce: Nonce, groups: Sequence[int] | None, *, payload: bool = False
    ) -> MessageResource:
        """Return the current state of a message; ``payload`` adds key, headers and value.

        Raises MessageNotFound, also if it belongs to none of these groups (None: all).
        """
        async with self._reading() as connection:
            found = await _read(connection, [half_id], nonce, groups, payload=payload)
        if not found:
            raise MessageNotFound
        return found[0]

    async def checks(self, group_id: int, limit: int) -> GroupChecks:
        """Return the newest checks of a group, among those of the messages that came last."""
        asked = {"group": group_id, "limit": limit, "slice": CHECKED_ROWS}
        async with self._reading() as connection:
            rows = await rows_of(connection, SQL["checks"], asked)
        checks = [
            GroupCheck(message_id=message_id_text(row["half_id"], row["nonce"]), **row)
            for row in rows
            if row["half_id"] is not None
        ]
        return GroupChecks(data=checks, searched_back_to=rows[0]["back_to"])

    async def history(self, half_id: HalfId, nonce: Nonce) -> list[dict[str, Any]]:
        """Return the events of a message, oldest first. Raises MessageNotFound.

        Each has a number ``seq``, ``at``, ``type`` and the facts of its type. After a failover that
        lost the last transactions, their ids are given to other messages.
        """
        async with self._reading() as connection:
            happened = await rows_of(connection, SQL["history"], {"half_id": half_id})
            status = (await read_statuses(connection, [half_id])).get(half_id)
        if status is None or status.nonce != nonce:
            raise MessageNotFound
        events = [{"at": row["at"], "type": row["type"], **row["facts"]} for row in happened]
        if status.publication is not None and status.op is not None:
            place = asdict(status.publication)
            at = place.pop("published_at")
            latency_ms = round((at - status.op.decided_at).total_seconds() * 1000)
            events.append({"at": at, "type": "published", **place, "latency_ms": latency_ms})
        return [{"seq": seq, **event} for seq, event in enumerate(events, 1)]

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection whose statements have one snapshot: a message may move between two."""
        async with lent(self._pool) as connection, one_snapshot(connection):
            await read_in_key_order(connection)
            yield connection


async def candidate_ids(
    connection: AsyncConnection, wanted: MessageFilter, at_most: int, *, held: bool
) -> list[HalfId]:
    """Return the newest ids that match, for bulk actions; ``held``: only what Kafka refuses."""
    await read_in_key_order(connection)
    queue = UNSETTLED if held else queue_of(wanted)
    half_ids: list[HalfId] = []
    while True:
        rest = replace(wanted, limit=at_most - len(half_ids))
        found = await _search(connection, rest, queue)
        half_ids += found.data
        if found.next_before is None or len(half_ids) == at_most:
            return half_ids
        wanted = replace(wanted, before=found.next_before)


async def _search(
    connection: AsyncConnection, wanted: MessageFilter, queue: str
) -> ListPage[HalfId]:
    """Return the newest messages of a queue that match, of a slice of it."""
    asked = parameters_of(wanted)
    rows = await rows_of(connection, candidates(queue), asked)
    half_ids = [HalfId(row["half_id"]) for row in rows]
    if len(half_ids) > wanted.limit:
        return ListPage(data=half_ids[: wanted.limit], next_before=half_ids[wanted.limit - 1])
    ends = await rows_of(connection, end_of_slice(queue), asked)
    return ListPage(data=half_ids, **ends[0]) if ends else ListPage(data=half_ids)


async def _read(
    connection: AsyncConnection,
    half_ids: Sequence[HalfId],
    nonce: Nonce | None = None,
    groups: Sequence[int] | None = None,
    *,
    payload: bool = False,
) -> list[MessageResource]:
    """Read messages of these groups in their present state, in the order asked."""
    asked = {
        "half_ids": list(half_ids),
        "nonce": nonce,
        "groups": groups,
        "payload": payload,
        **bounds(half_ids),
    }
    rows = {row["half_id"]: row for row in await rows_of(connection, SQL["messages"], asked)}
    statuses = await read_statuses(connection, half_ids)
    return [
        _resource(rows[half_id], statuses[half_id], payload=payload)
        for half_id in half_ids
        if half_id in rows and half_id in statuses
    ]


def _resource(row: Mapping[str, Any], status: MessageStatus, *, payload: bool) -> MessageResource:
    """Return a message as REST shows it; without ``payload`` those members are not set."""
    members = {
        **row,
        **(asdict(status.op) if status.op else UNDECIDED),
        "message_id": message_id_text(status.half_id, status.nonce),
        "state": status.state,
        "publication": status.publication,
        "publish_error": status.publish_error,
    }
    if status.state is not State.PREPARED:
        members["next_check_at"] = None
    if status.state is not State.PARKED:
        members |= {"parked_at": None, "parked_reason": None}
    stored = {name: members.pop(name) for name in ("headers", "key", "value")}
    if payload:
        whole = headers_if_whole(stored["headers"])
        members["headers"] = whole if whole is None else header_values(whole)
        members |= text_or_base64("key", stored["key"]) | text_or_base64("value", stored["value"])
    return MessageResource.model_validate(members)
