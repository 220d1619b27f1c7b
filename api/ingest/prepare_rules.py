"""The rules of a prepare that a schema cannot express, and the message that it makes.

Raises Problem with the slug and the JSON pointer of the first rule broken. Pure: no I/O.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from types import NoneType
from typing import Final, TypeVar

from msgspec import UNSET, Raw
from msgspec.structs import replace

from api.http.json_body import decode, pointer_to
from api.http.problems import Problem, all_invalid, invalid
from api.ingest.record_size import REST_MAX_BYTES, batch_bytes
from api.ingest.schemas import (
    GROUP_PATTERN,
    HEADERS,
    MEDIA_TYPE_PATTERN,
    TOPIC_PATTERN,
    HeaderBytes,
    MessageRequest,
    PrepareRequest,
)
from outbox.messages.message import Headers, Message
from outbox.messages.record import asks_for_delay, is_reserved
from outbox.messages.topics import SeenTopic

ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")

_ABSENT: Final = (None, UNSET, Raw(b"null"))
"""The values of a member that is not given."""
MESSAGE_MAX_BYTES: Final = 1_000_000
"""Largest size of key, value and caller headers, decoded; Kafka's own default is just above it."""
KEY_MAX_BYTES: Final = 8192
HEADERS_MAX: Final = 64
HEADER_VALUE_MAX_BYTES: Final = 4096
HEADERS_MAX_BYTES: Final = 32_768
INTERNAL_TOPIC: Final = "outbox.progress"

NO_DELAY: Final = "is refused: a half message cannot be delayed"
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}(?![\s\S])")
HEADER_VALUES: Final = 'must be an object of texts, {"base64": …} and nulls'
_QUOTES: Final = {str: 4, NoneType: 2, HeaderBytes: 6}
"""Quotation marks of a header in JSON, by the type of its value; more show a repeated name."""
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?![\s\S])"
)
_IDEMPOTENCY_KEY: Final = re.compile(r'"((?:[^"\\]|\\["\\])+)"|([^"]+)')


def message_of(
    request: PrepareRequest,
    traceparent: str | None,
    idempotency_key: str | None,
    key_id: str | None,
) -> Message:
    """Return the message, whose names are not looked up; raises Problem for the first rule broken.

    Several messages under one decision are the first one and its followers. ``key_id`` names the
    API key that prepares them.
    """
    _validate_decision(request)
    make = partial(
        Message,
        producer_group=request.producer_group,
        transaction_id=_transaction_id_of(request, idempotency_key),
        check_immunity_seconds=_integer(request.check_immunity_seconds),
        traceparent=traceparent,
        key_id=key_id,
    )
    if request.messages is None:
        return _message(request, make)
    for name in MessageRequest.__struct_fields__:
        if getattr(request, name) not in _ABSENT:
            raise invalid(f"/{name}", "may not stand beside messages")
    leader, *followers = each_under(
        "/messages", request.messages, lambda each: _message(each, make)
    )
    return replace(leader, followers=tuple(followers))


def each_under(pointer: str, items: Sequence[ItemT], make: Callable[[ItemT], MadeT]) -> list[MadeT]:
    """Return what is made of each item of a list; a Problem points at the item that it is of."""
    made = []
    for place, item in enumerate(items):
        try:
            made.append(make(item))
        except Problem as problem:
            errors = [(f"{pointer}/{place}{at}", rule) for at, rule in problem.errors]
            raise all_invalid(errors, problem.slug) from None
    return made


def _message(request: MessageRequest | PrepareRequest, make: Callable[..., Message]) -> Message:
    if request.deliver_after is not None:
        raise invalid("/deliver_after", NO_DELAY, "delay-not-supported")
    topic = _topic_of(request)
    key, value = _key_of(request), _value_of(request)
    headers = _headers_of(request.headers) if isinstance(request.headers, Raw) else ()
    header_bytes = _bytes_of(headers)
    size = len(key or b"") + len(value or b"") + header_bytes
    if size > MESSAGE_MAX_BYTES:
        detail = f"has {size} bytes of key, value and headers, and may have {MESSAGE_MAX_BYTES}"
        raise invalid("", detail, "payload-too-large")
    return make(
        topic=topic,
        value=value,
        key=key,
        partition=_integer(request.partition),
        headers=headers,
        content_type=request.content_type or None,
        tags=tuple(request.tags) if request.tags else (),
    )


def refuse_unpublishable(message: Message, seen: SeenTopic) -> None:
    """Raise Problem if Kafka would refuse this record for good, as the relay last saw its topic."""
    if seen.may_write is False:
        detail = "may not be written by the relay in Kafka: grant its principal WRITE"
        raise invalid("/topic", detail, "topic-not-allowed")
    if seen.compacted and message.key is None:
        raise invalid("/key", "is required, because the topic is compacted")
    limit, content = seen.max_message_bytes, len(message.key or b"") + len(message.value or b"")
    if limit is None or content + REST_MAX_BYTES <= limit:
        return
    size = batch_bytes(message)
    if size > limit:
        detail = f"makes a record of {size} bytes, and the topic accepts {limit}"
        raise invalid("", f"{detail} (max.message.bytes, segment.bytes)", "payload-too-large")


def _validate_decision(request: PrepareRequest) -> None:
    if not _fits(GROUP_PATTERN, request.producer_group):
        raise invalid("/producer_group", "must be letters, digits, . _ -, and begin with no sign")
    if request.transaction_id and CONTROLS.search(request.transaction_id):
        raise invalid("/transaction_id", "must not hold a control character")


def _topic_of(request: MessageRequest | PrepareRequest) -> str:
    """Return the topic; match the texts of a message against their patterns."""
    if request.topic is None:
        raise invalid("/topic", "is required")
    if not _fits(TOPIC_PATTERN, request.topic):
        raise invalid("/topic", "must be letters, digits, . _ -, and neither . nor ..")
    if request.topic.startswith("__") or request.topic == INTERNAL_TOPIC:
        raise invalid("/topic", "is reserved", "topic-reserved")
    if request.content_type and not _fits(MEDIA_TYPE_PATTERN, request.content_type):
        raise invalid("/content_type", "must be a media type, such as application/json")
    for place, tag in enumerate(request.tags or ()):
        if "\x00" in tag:
            raise invalid(f"/tags/{place}", "must not hold a NUL character")
    return request.topic


@lru_cache(maxsize=4096)
def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _headers_of(text: Raw) -> Headers:
    """Return the headers; refuses a repeated name, and a header that is invalid."""
    try:
        headers, raw = decode(text, HEADERS) or {}, bytes(text)
    except Problem as refused:
        raise invalid("/headers", HEADER_VALUES) if refused.errors else refused from None
    quotes = sum(_QUOTES[type(value)] for value in headers.values())
    if b"\\" in raw or raw.count(b'"') != quotes:
        names = Counter(name for name, _ in json.loads(raw, object_pairs_hook=list) or ())
        if repeated := [name for name, times in names.items() if times > 1]:
            raise invalid(pointer_to(["headers", repeated[0]]), "is present twice")
    if len(headers) > HEADERS_MAX:
        raise invalid("/headers", f"must have at most {HEADERS_MAX} members")
    return tuple((name, _header_value(name, given)) for name, given in headers.items())


def _bytes_of(headers: Headers) -> int:
    """Return the bytes of all headers; refuses more than HEADERS_MAX_BYTES."""
    total = sum(len(name) + len(value or b"") for name, value in headers)
    if total > HEADERS_MAX_BYTES:
        raise invalid("/headers", f"must have at most {HEADERS_MAX_BYTES} bytes together")
    return total


def _header_value(name: str, given: str | HeaderBytes | None) -> bytes | None:
    """Return the value of a header; refuses one that is invalid."""
    if not _HEADER_NAME.match(name):
        raise invalid("/headers", "must have names of 1 to 128 of A-Z a-z 0-9 . _ -")
    pointer = f"/headers/{name}"
    if asks_for_delay(name):
        raise invalid(pointer, NO_DELAY, "delay-not-supported")
    if is_reserved(name):
        raise invalid(pointer, "is reserved", "header-reserved")
    if given is None:
        return None
    if isinstance(given, HeaderBytes):
        value = _base64(given.base64, pointer)
    elif CONTROLS.search(given):
        raise invalid(pointer, 'must not hold a control character: send {"base64": …}')
    else:
        value = given.encode()
    if len(value) > HEADER_VALUE_MAX_BYTES:
        raise invalid(pointer, f"must have at most {HEADER_VALUE_MAX_BYTES} bytes")
    return value


def _integer(number: float | None) -> int | None:
    return None if number is None else int(number)


def _transaction_id_of(request: PrepareRequest, idempotency_key: str | None) -> str | None:
    """Return the transaction id, from the body or from ``Idempotency-Key``."""
    given = request.transaction_id or None
    if idempotency_key is None:
        return given
    alias = _read_idempotency_key(idempotency_key)
    if given is not None and given != alias:
        raise Problem(slug="idempotency-key-mismatch")
    return alias


def traceparent_of(header: str | None) -> str | None:
    """Return a well-formed W3C trace context; anything else counts as absent."""
    return header if header is not None and _TRACEPARENT.match(header) else None


def _read_idempotency_key(header: str) -> str:
    found = _IDEMPOTENCY_KEY.fullmatch(header.strip())
    quoted, plain = found.groups() if found else (None, None)
    text = re.sub(r'\\(["\\])', r"\1", quoted) if quoted else plain or ""
    if not 1 <= len(text) <= 128 or CONTROLS.search(text) or not text.isascii():
        detail = "takes an Idempotency-Key of 1 to 128 ASCII characters without controls"
        raise invalid("", f"{detail}; send any other text as transaction_id")
    return text


def _key_of(request: MessageRequest | PrepareRequest) -> bytes | None:
    text, encoded = request.key, request.key_base64
    if text is None and encoded is None:
        return None
    if text is not None and encoded is not None:
        raise invalid("/key_base64", "may not stand beside key: send one of the two")
    pointer = "/key" if encoded is None else "/key_base64"
    key = (text or "").encode() if encoded is None else _base64(encoded, pointer)
    if len(key) > KEY_MAX_BYTES:
        raise invalid(pointer, f"must have at most {KEY_MAX_BYTES} bytes")
    return key


def _value_of(request: MessageRequest | PrepareRequest) -> bytes | None:
    text, encoded = request.value, request.value_base64
    if text is UNSET if encoded is None else isinstance(text, str):
        raise invalid("/value", "or value_base64 is required, and not both")
    if encoded is not None:
        return _base64(encoded, "/value_base64")
    return text.encode() if isinstance(text, str) else None


def _base64(text: str, pointer: str) -> bytes:
    """Decode padded RFC 4648 section 4 text whose unused bits are zero."""
    with suppress(ValueError):
        data = base64.b64decode(text, validate=True)
        if base64.b64encode(data) == text.encode():
            return data
    raise invalid(pointer, "must be base64 with its padding")
