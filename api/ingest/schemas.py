"""The wire models of the four hot routes: msgspec structs, one decode and one encode per request.

Their JSON schemas are merged into the OpenAPI document. Rules that a schema can express are here;
the others (base64, total sizes, reserved names) are in ``prepare_rules`` and ``ends``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from api.http.wire_types import NO_NUL
from outbox.messages.message import DecidedBy, Publication, Resolution, State, Time

BATCH_ITEMS_MAX: Final = 1000
GROUP_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""As in the contract, for every language; here ``fullmatch`` reads ``$`` as the very end."""
TOPIC_PATTERN: Final = r"^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$"
NO_CONTROLS: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"
_TOKEN: Final = r"[A-Za-z0-9!#$&^_.+*'`|~%-]+"
MEDIA_TYPE_PATTERN: Final = rf"^{_TOKEN}/{_TOKEN}[\x20-\x7e]*$"


def _text(pattern: str, max_length: int, *, min_length: int | None = 1) -> Meta:
    """Return a text's bounds; its pattern is documented here and matched in ``prepare_rules``.

    A regular expression in a decoder costs more time than the rest of it, and most names repeat.
    """
    return Meta(
        max_length=max_length, min_length=min_length, extra_json_schema={"pattern": pattern}
    )


GroupName = Annotated[str, _text(GROUP_PATTERN, 128)]
TopicName = Annotated[str, _text(TOPIC_PATTERN, 249)]
TransactionId = Annotated[str, _text(NO_CONTROLS, 128)]
Reason = Annotated[str, _text(NO_NUL, 500, min_length=None)]
Tag = Annotated[str, _text(NO_NUL, 64)]
PartitionNumber = (
    Annotated[int, Meta(ge=0, le=2_147_483_647)]
    | Annotated[float, Meta(ge=0, le=2_147_483_647, multiple_of=1)]
)
"""An integer as JSON Schema means it: 7.0 is one."""
ImmunitySeconds = (
    Annotated[int, Meta(ge=1, le=3600)] | Annotated[float, Meta(ge=1, le=3600, multiple_of=1)]
)
MediaType = Annotated[str, _text(MEDIA_TYPE_PATTERN, 255)]
_VALUES: Final = {
    "type": "object",
    "additionalProperties": {"$ref": "#/components/schemas/HeaderValue"},
}
HeadersText = Annotated[msgspec.Raw, Meta(extra_json_schema={"anyOf": [_VALUES, {"type": "null"}]})]
"""Decoded later: a decoder keeps the last of two equal names."""
Tags = Annotated[list[Tag], Meta(max_length=16)]
Messages = Annotated[list["MessageRequest"], Meta(min_length=2, max_length=100)]


class HeaderBytes(Struct, forbid_unknown_fields=True, gc=False):
    """The bytes of a header that are no text."""

    base64: str


class _Content(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    value: Annotated[str | None, Meta(description="Text; null is a tombstone.")] | UnsetType = UNSET
    value_base64: Annotated[str | None, Meta(description="RFC 4648 section 4.")] = None
    key: str | None = None
    key_base64: str | None = None
    partition: PartitionNumber | None = None
    headers: HeadersText | UnsetType = UNSET
    content_type: MediaType | None = None
    tags: Tags | None = None
    deliver_after: Any = None
    """Always refused, and no part of the contract."""


class MessageRequest(_Content, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One of several messages under one decision."""

    topic: TopicName


class PrepareRequest(_Content, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A half message to store, or several under one decision in ``messages``.

    Of each message exactly one of ``value`` and ``value_base64`` is present. A null means an absent
    member, but for ``value`` without ``value_base64``.
    """

    producer_group: GroupName
    topic: TopicName | None = None
    messages: Messages | None = None
    transaction_id: TransactionId | None = None
    check_immunity_seconds: ImmunitySeconds | None = None


class EndRequest(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The producer's decision on a half message."""

    decision: Resolution
    reason: Reason | None = None
    transaction_id: TransactionId | None = None


class EndItem(EndRequest, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One end of a batch: the members of the single call, and the id of its message."""

    message_id: str


class PrepareBatch(Struct, forbid_unknown_fields=True, gc=False):
    """Up to 1000 prepares, each with its own result."""

    items: Annotated[list[PrepareRequest], Meta(min_length=1, max_length=BATCH_ITEMS_MAX)]


class EndBatch(Struct, forbid_unknown_fields=True, gc=False):
    """Up to 1000 ends, each with its own result."""

    items: Annotated[list[EndItem], Meta(min_length=1, max_length=BATCH_ITEMS_MAX)]


class PreparedHalf(Struct, kw_only=True, gc=False):
    """A durable half message; ``next_check_at`` is null once it is no longer PREPARED."""

    message_id: str
    state: State
    producer_group: str
    transaction_id: str | None
    topic: str
    prepared_at: Time
    next_check_at: Time | None
    message_ids: list[str] | UnsetType = UNSET
    """All messages of the request if it has ``messages``, in its order; the first is ended."""


class EndedHalf(Struct, kw_only=True, gc=False):
    """The final decision; its members are null while there is none."""

    message_id: str
    state: State
    decision: Resolution | None
    decided_by: DecidedBy | None
    decided_at: Time | None
    already_ended: bool
    publication: Publication | None


class PrepareResult(Struct, omit_defaults=True, gc=False):
    """The result of one prepare of a batch: ``result`` or ``problem``, never both.

    ``replayed`` is there, and true, if an earlier prepare had stored the message.
    """

    index: int
    status: int
    replayed: bool = False
    result: PreparedHalf | None = None
    problem: dict[str, Any] | None = None


class EndResult(Struct, omit_defaults=True, gc=False):
    """The result of one end of a batch: ``result`` or ``problem``, never both."""

    index: int
    status: int
    result: EndedHalf | None = None
    problem: dict[str, Any] | None = None


class PrepareBatchAnswer(Struct, gc=False):
    """The results in request order."""

    items: list[PrepareResult]


class EndBatchAnswer(Struct, gc=False):
    """The results in request order."""

    items: list[EndResult]


PREPARE: Final = msgspec.json.Decoder(PrepareRequest)
HEADERS: Final = msgspec.json.Decoder(dict[str, str | HeaderBytes | None] | None)
END: Final = msgspec.json.Decoder(EndRequest)
END_ITEM: Final = msgspec.json.Decoder(EndItem)
ENCODER: Final = msgspec.json.Encoder()
