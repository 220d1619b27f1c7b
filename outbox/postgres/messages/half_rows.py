"""The table of half messages: a half as a row of its COPY, and as read back by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from msgspec.structs import replace

from outbox.messages.message import HalfMessage, Headers, Message, Prepared
from outbox.messages.message_id import LOW_BITS, HalfId, Nonce
from outbox.messages.record import digest_of
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
COPY_HALVES: Final = SQL["copy_halves"]

_COPY_BEGIN: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""The head of COPY's binary form: no flags, no extension."""
_COPY_END: Final = b"\xff\xff"

REPEATED: Final = (
    *("topic", "partition", "key", "value", "headers"),
    *("content_type", "tags", "check_immunity_seconds"),
)
"""The fields that a repeated prepare must have equal."""
SETS: Final = ("headers", "tags")
SAID_ONCE: Final = ("check_immunity_seconds",)
"""The fields that are those of the decision."""

LAST_ROW: Final = (1 << LOW_BITS) - 1
"""The bits of a half id that tell the rows of a transaction."""
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""PostgreSQL stores a time as microseconds since then."""
_MICROSECOND: Final = timedelta(microseconds=1)
_NULL: Final = b"\xff\xff\xff\xff"
_ALONE: Final = 2 * _NULL
"""The columns of a message that has its decision to itself."""
_NOT_NULL_FIELDS: Final = Struct("!hiqiqiqiqiiii").pack
"""The number of fields, then each of the first six with its length in bytes."""
_LENGTH: Final = Struct("!i").pack
_INT4: Final = Struct("!ii").pack
_INT8: Final = Struct("!q").pack
_ARRAY: Final = Struct("!iiiii").pack
"""The head of an array: dimensions, a flag that is not read, type, elements, first subscript."""
_TEXT_OID: Final = 25
_BYTEA_OID: Final = 17
_INT8_OID: Final = 20


def new_half(
    message: Message,
    half_id: HalfId,
    nonce: Nonce,
    prepared_at: datetime,
    followers: tuple[HalfId, ...] = (),
    leader_id: HalfId | None = None,
) -> HalfMessage:
    """Return the half message with the digest of its record's content."""
    return HalfMessage(
        half_id=half_id,
        nonce=nonce,
        message=message,
        prepared_at=prepared_at,
        content_digest=digest_of(half_id, nonce, message),
        followers=followers,
        leader_id=leader_id,
    )


def copy_data(halves: Iterable[HalfMessage]) -> bytes:
    """Return the data of a COPY that appends the halves, in the order given."""
    return b"".join((_COPY_BEGIN, *map(_copy_row, halves), _COPY_END))


def _copy_row(half: HalfMessage) -> bytes:
    """Return the row that COPY appends, in binary and in the order of its column list."""
    message = half.message
    return b"".join(
        (
            _NOT_NULL_FIELDS(
                18,
                8,
                half.half_id,
                8,
                half.nonce,
                8,
                _microseconds(half.prepared_at),
                8,
                half.content_digest,
                4,
                message.producer_group_id,
                4,
                message.topic_id,
            ),
            _int4(message.partition),
            _int4(message.check_immunity_seconds),
            _text(message.transaction_id),
            _bytea(message.key),
            _bytea(message.value),
            _array(_BYTEA_OID, _flat(message.headers)),
            _text(message.content_type),
            _text(message.traceparent),
            _array(_TEXT_OID, [tag.encode() for tag in message.tags]),
            _text(message.key_id),
            _under_decision(half),
        )
    )


@lru_cache(maxsize=4)
def _microseconds(at: datetime) -> int:
    """Return a time as PostgreSQL stores it; the rows of a flush share theirs."""
    return (at - _EPOCH) // _MICROSECOND


def _under_decision(half: HalfMessage) -> bytes:
    """Return the columns ``followers`` and ``leader_id``."""
    if half.leader_id is not None:
        return _NULL + _bytea(_INT8(half.leader_id))
    if not half.followers:
        return _ALONE
    return _array(_INT8_OID, list(map(_INT8, half.followers))) + _NULL


def _int4(number: int | None) -> bytes:
    return _NULL if number is None else _INT4(4, number)


def _bytea(data: bytes | None) -> bytes:
    return _NULL if data is None else _LENGTH(len(data)) + data


def _text(text: str | None) -> bytes:
    return _NULL if text is None else _bytea(text.encode())


def _array(kind: int, elements: Sequence[bytes | None]) -> bytes:
    """Return an array of texts or bytes; an empty one is stored as null."""
    if not elements:
        return _NULL
    return _bytea(_ARRAY(1, 0, kind, len(elements), 1) + b"".join(map(_bytea, elements)))


def _flat(headers: Headers) -> list[bytes | None]:
    """Return names and values in turn."""
    return [each for name, value in headers for each in (name.encode(), value)]


def read_half(row: Mapping[str, Any]) -> HalfMessage:
    """Build the half message of a row that names its group and topic.

    Raises ValueError if its stored form is broken.
    """
    made = {"message": read_message(row), "followers": row.get("followers") or ()}
    return convert({**row, **made}, HalfMessage)


def read_message(row: Mapping[str, Any]) -> Message:
    """Build the message of a row. Raises ValueError if its headers are damaged."""
    named = {"headers": read_headers(row["headers"]), "tags": row.get("tags") or ()}
    return convert({**row, **named, "followers": ()}, Message)


def read_if_whole(row: Mapping[str, Any]) -> HalfMessage | None:
    """Build the half, or None if its stored form is broken: it must not delay others."""
    try:
        return read_half(row)
    except ValueError:
        return None


async def read_whole_halves(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> dict[HalfId, HalfMessage | None]:
    """Read halves by id without unknown ids; None is a half whose stored form is broken."""
    if not half_ids:
        return {}
    asked = {"half_ids": list(half_ids), **bounds(half_ids)}
    rows = await rows_of(connection, SQL["read_halves"], asked)
    return {row["half_id"]: read_if_whole(row) for row in rows}


async def read_decisions(
    connection: AsyncConnection, half_ids: Sequence[HalfId]
) -> dict[HalfId, Prepared | None]:
    """Read halves by id with their followers; None: the stored form of one is broken.

    The leaf of a decided message may have gone with some of its followers.
    """
    leaders = await read_whole_halves(connection, half_ids)
    follower_ids = [each for half in leaders.values() if half for each in half.followers]
    followers = await read_whole_halves(connection, follower_ids)
    return {half_id: _decision(half, followers) for half_id, half in leaders.items()}


def _decision(
    half: HalfMessage | None, followers: Mapping[HalfId, HalfMessage | None]
) -> Prepared | None:
    found = [followers[each] for each in half.followers if each in followers] if half else []
    whole = tuple(follower for follower in found if follower)
    if half is None or len(whole) < len(found):
        return None
    message = replace(half.message, followers=tuple(follower.message for follower in whole))
    return Prepared(half=replace(half, message=message), followers=whole)


def read_headers(names_and_values: list[bytes | None] | None) -> Headers:
    """Pair up the alternating names and values of the ``headers`` column.

    Raises ValueError if they are damaged: not names and values in turn.
    """
    flat: list[Any] = names_and_values or []
    try:
        return tuple(zip([name.decode() for name in flat[::2]], flat[1::2], strict=True))
    except AttributeError:
        raise ValueError("a header has no name") from None


def headers_if_whole(names_and_values: list[bytes | None] | None) -> Headers | None:
    """Return the headers, or None if they are damaged; then the content digest differs, too."""
    try:
        return read_headers(names_and_values)
    except ValueError:
        return None


def difference(stored: Message, asked: Message) -> str | None:
    """Return the first member in which a repeated prepare differs; the order of a set is free."""
    if len(stored.followers) != len(asked.followers):
        return "messages"
    both = zip((stored, *stored.followers), (asked, *asked.followers), strict=True)
    differing = (
        f"messages/{place}/{name}" if asked.followers and name not in SAID_ONCE else name
        for place, (one, other) in enumerate(both)
        for name in REPEATED
        if _of(one, name) != _of(other, name)
    )
    return next(differing, None)


def _of(message: Message, name: str) -> object:
    field = getattr(message, name)
    return set(field) if name in SETS else field


def bounds(half_ids: Sequence[HalfId]) -> dict[str, int]:
    """Return the parameters ``low`` and ``high`` that let PostgreSQL prune partitions.

    They are those of whole transactions: all messages of a decision are between them.
    """
    low, high = min(half_ids, default=0), max(half_ids, default=0)
    return {"low": low & ~LAST_ROW, "high": high | LAST_ROW}
