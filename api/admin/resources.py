"""From the library's values to the wire models of the cold routes. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from api.models import (
    GroupResource,
    HistoryEventResource,
    HistoryResource,
    KeyResource,
    LastCheckResource,
    MessageResource,
    PublicationResource,
)
from outbox.access import ApiKey
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import HalfMessage, Publication
from outbox.operators.message_view import HistoryEvent, LastCheck, MessageView

PAYLOAD = frozenset({"headers", "key", "key_base64", "value", "value_base64"})


def message_resource(view: MessageView) -> MessageResource:
    """Return a message as readers see it."""
    half, message, standing = view.half, view.half.message, view.standing
    op = standing.op
    return MessageResource(
        message_id=str(half.message_id),
        producer_group=message.producer_group,
        transaction_id=message.transaction_id,
        topic=message.content.topic,
        partition=message.content.partition,
        state=standing.state,
        decision=op.decision if op else None,
        decided_by=op.decided_by if op else None,
        decided_at=op.decided_at if op else None,
        reason=op.reason if op else None,
        prepared_at=half.prepared_at,
        next_check_at=view.next_check_at,
        check_count=view.check_count,
        last_check=_last_check(view.last_check),
        parked_at=view.parked_at,
        parked_reason=view.parked_reason,
        content_type=message.content.content_type,
        tags=list(message.tags),
        value_bytes=view.value_bytes,
        publication=_publication(standing.publication),
        publish_error=standing.publish_error,
        **(_payload(half) if view.payload else {}),
    )


def message_json(view: MessageView) -> bytes:
    """Return the resource as JSON; payload members stand in it only when they were asked for."""
    resource = message_resource(view)
    hidden = PAYLOAD - resource.model_fields_set
    return resource.model_dump_json(exclude=set(hidden)).encode()


def history_resource(message_id: str, events: Sequence[HistoryEvent]) -> HistoryResource:
    """Return a history, numbered."""
    numbered = [
        HistoryEventResource(seq=seq, at=event.at, type=event.type, **event.facts)
        for seq, event in enumerate(events, 1)
    ]
    return HistoryResource(message_id=message_id, events=numbered)


def group_resource(group: ProducerGroup) -> GroupResource:
    """Return a producer group without its secrets."""
    hidden = ("id", "name", "secrets")
    values = {
        name: getattr(group, name) for name in group.__dataclass_fields__ if name not in hidden
    }
    return GroupResource(producer_group=group.name, **(values | {"topics": list(group.topics)}))


def key_resource(key: ApiKey) -> KeyResource:
    """Return an API key without its secret."""
    return KeyResource(
        key_id=key.key_id,
        name=key.name,
        producer_groups=list(key.producer_groups),
        scopes=list(key.scopes),
        created_at=key.created_at,
        expires_at=key.expires_at,
    )


def _last_check(check: LastCheck | None) -> LastCheckResource | None:
    if check is None:
        return None
    return LastCheckResource(
        at=check.at,
        outcome=check.outcome,
        http_status=check.http_status,
        latency_ms=check.latency_ms,
    )


def _publication(place: Publication | None) -> PublicationResource | None:
    if place is None:
        return None
    return PublicationResource(
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        published_at=place.published_at,
    )


def _payload(half: HalfMessage) -> dict[str, Any]:
    content = half.message.content
    return {
        "headers": dict(content.headers),
        **_text_or_base64("key", content.key),
        **_text_or_base64("value", content.value),
    }


def _text_or_base64(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes as text where they are UTF-8, else in base64."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
