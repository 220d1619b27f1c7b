"""Reads the body of a check-back, single or batch, without I/O (section 2.1 of the contract)."""

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from outbox_client.listener import Check

SINGLE = "transaction.check"
BATCH = "transaction.check.batch"


class Refused(Exception):
    """The request is not a readable check-back; ``status`` is the HTTP status of the refusal."""

    def __init__(self, status: int, title: str) -> None:
        super().__init__(title)
        self.status = status
        self.title = title


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The checks of one call; ``sent_at`` and each ``reply_by`` are on the service's clock."""

    checks: tuple[Check, ...]
    batch: bool
    sent_at: datetime

    @property
    def budget(self) -> timedelta:
        """The time for the whole answer; a difference, so clock skew has no effect."""
        return min(check.reply_by for check in self.checks) - self.sent_at


def read_check_request(body: bytes) -> CheckRequest:
    """Read a check-back; raises ``Refused`` (400) if it is not one."""
    try:
        envelope = _object(json.loads(body))
        data = _object(envelope["data"])
        batch = _is_batch(envelope)
        items = _list(data["checks"]) if batch else [data]
        checks = tuple(_check(_object(item)) for item in items)
        sent_at = _time(envelope, "timestamp")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise Refused(400, "not a check-back this endpoint can read") from error
    if not checks:
        raise Refused(400, "a batch without checks")
    return CheckRequest(checks=checks, batch=batch, sent_at=sent_at)


def _is_batch(envelope: Mapping[str, object]) -> bool:
    kind = envelope["type"]
    if kind not in (SINGLE, BATCH):
        raise ValueError("neither form of a check")
    return kind == BATCH


def _check(members: Mapping[str, object]) -> Check:
    transaction_id = members.get("transaction_id")
    return Check(
        message_id=_text(members, "message_id"),
        transaction_id=None if transaction_id is None else _text(members, "transaction_id"),
        producer_group=_text(members, "producer_group"),
        topic=_text(members, "topic"),
        key=_text_or_bytes(members, "key"),
        headers={
            name: _header(value) for name, value in _object(members.get("headers", {})).items()
        },
        attempt=_integer(members, "attempt"),
        max_attempts=_integer(members, "max_attempts"),
        prepared_at=_time(members, "prepared_at"),
        reply_by=_time(members, "reply_by"),
        value=_text_or_bytes(members, "value"),
        has_value="value" in members or "value_base64" in members,
    )


def _header(value: object) -> str | bytes | None:
    if isinstance(value, dict):
        return b64decode(_text(value, "base64"), validate=True)
    return None if value is None else str(value)


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _text(members: Mapping[str, object], name: str) -> str:
    value = members[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def _integer(members: Mapping[str, object], name: str) -> int:
    value = members[name]
    if not isinstance(value, int):
        raise TypeError(name)
    return value


def _time(members: Mapping[str, object], name: str) -> datetime:
    moment = datetime.fromisoformat(_text(members, name))
    if moment.tzinfo is None:
        raise ValueError(name)
    return moment


def _text_or_bytes(members: Mapping[str, object], name: str) -> bytes | str | None:
    if f"{name}_base64" in members:
        return b64decode(_text(members, f"{name}_base64"), validate=True)
    return None if members.get(name) is None else _text(members, name)
