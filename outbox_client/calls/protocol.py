"""Builds requests and reads answers of the REST API, without I/O."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from outbox_client.errors import BadAnswer, OutboxError, Problem, ServiceUnreachable, error_of
from outbox_client.message import (
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    PreparedMessage,
    Publication,
)

BATCH_MAX_ITEMS = 1000
BATCH_MAX_BYTES = 7 * 1024 * 1024  # the service accepts 8 MiB
PREFER = "prefer"
WAIT_MAX_SECONDS = 30
GATEWAY_STATUSES = frozenset({408, 429, 502, 503, 504})

Members = Mapping[str, object]

_TEXT = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One POST to the service."""

    path: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Return whether the service may wait for Kafka before it answers."""
        return PREFER in self.headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer; the names of ``headers`` are lower case.

    The answer to one item of a batch has its ``members``, and no ``body``.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    members: Members | None = None


def prepare_item(producer_group: str, message: Message, *followers: Message) -> bytes:
    """Return the JSON body that prepares ``message``, and ``followers`` under its decision."""
    said = {
        "producer_group": producer_group,
        "transaction_id": message.transaction_id,
        "check_immunity_seconds": message.check_immunity_seconds,
    }
    content = _content(message)
    if followers:
        content = {"messages": [content, *map(_content, followers)]}
    return _json({name: value for name, value in said.items() if value is not None} | content)


def _content(message: Message) -> dict[str, object]:
    members: dict[str, object] = {"topic": message.topic}
    members |= _text_or_base64("value", message.value)
    if message.key is not None:
        members |= _text_or_base64("key", message.key)
    optional = {
        "partition": message.partition,
        "headers": {name: _header(value) for name, value in message.headers.items()} or None,
        "content_type": message.content_type,
        "tags": list(message.tags) or None,
    }
    return members | {name: value for name, value in optional.items() if value is not None}


def end_item(ending: Ending, *, with_id: bool) -> bytes:
    """Return the JSON body of one end; ``with_id`` adds the message id, for a batch."""
    members: dict[str, object] = {"message_id": str(ending.message_id)} if with_id else {}
    members["decision"] = LocalTransactionState(ending.decision).value
    if ending.reason is not None:
        members["reason"] = ending.reason
    return _json(members)


def prepare_request(item: bytes) -> Request:
    """Return the request of a single prepare."""
    return Request(path="/v1/half-messages", body=item)


def end_request(ending: Ending, wait: int) -> Request:
    """Return the request of a single end that waits up to ``wait`` seconds for publication."""
    path = f"/v1/half-messages/{quote(str(ending.message_id), safe='')}/end"
    return Request(path=path, body=end_item(ending, with_id=False), headers=prefer(wait))


def batch_request(operation: str, items: Sequence[bytes], wait: int = 0) -> Request:
    """Return the request of a batch; ``operation`` is ``batch`` (prepare) or ``end-batch``."""
    body = b'{"items":[' + b",".join(items) + b"]}"
    return Request(path=f"/v1/half-messages/{operation}", body=body, headers=prefer(wait))


def prefer(wait: int) -> dict[str, str]:
    """Return the header of a request that waits for Kafka; raises ValueError."""
    if wait not in range(WAIT_MAX_SECONDS + 1):
        raise ValueError(f"wait is a whole number of seconds from 0 to {WAIT_MAX_SECONDS}")
    return {PREFER: f"wait={int(wait)}"} if wait else {}


def split_batches(items: Sequence[bytes]) -> list[range]:
    """Split ``items`` into ranges that each fit into one batch request, in order."""
    runs: list[range] = []
    start = size = 0
    for index, item in enumerate(items):
        full = index - start == BATCH_MAX_ITEMS or size + len(item) > BATCH_MAX_BYTES
        if full and index > start:
            runs.append(range(start, index))
            start, size = index, 0
        size += len(item) + 1
    return [*runs, range(start, len(items))] if items else []


def read_prepared(answer: Answer, message: Message) -> PreparedMessage:
    """Read the answer to a prepare of ``message``; raise the error of a problem."""
    members = _success(answer, {201})
    if _text_or_none(members, "transaction_id") != message.transaction_id:
        raise BadAnswer("the answer belongs to another message: do not run its transaction")
    replayed = answer.headers.get("idempotency-replayed", "").lower() == "true"
    return PreparedMessage(
        message_id=_text(members, "message_id"),
        state=_text(members, "state"),
        producer_group=_text(members, "producer_group"),
        transaction_id=_text_or_none(members, "transaction_id"),
        topic=_text(members, "topic"),
        prepared_at=_time(members, "prepared_at"),
        next_check_at=_time_or_none(members, "next_check_at"),
        replayed=replayed or members["state"] != "PREPARED",
        message=message,
        message_ids=_message_ids(members),
    )


def _message_ids(members: Members) -> tuple[str, ...]:
    ids = members.get("message_ids")
    return tuple(map(str, ids)) if isinstance(ids, list) else (_text(members, "message_id"),)


def read_ended(answer: Answer) -> EndResult:
    """Read the answer to an end; raise the error of a problem."""
    members = _success(answer, {200})
    return EndResult(
        message_id=_text(members, "message_id"),
        state=_text(members, "state"),
        decision=_decision(members),
        decided_by=_text_or_none(members, "decided_by"),
        decided_at=_time_or_none(members, "decided_at"),
        already_ended=members.get("already_ended") is True,
        publication=_publication(members.get("publication")),
    )


def read_batch(answer: Answer, count: int) -> list[Answer]:
    """Read the 207 of a batch of ``count`` items: each item as the answer to a single call."""
    items = _success(answer, {207}).get("items")
    if not isinstance(items, list) or len(items) != count:
        raise BadAnswer(f"a batch of {count} items has no answer for each item")
    headers = {name: answer.headers[name] for name in ("retry-after",) if name in answer.headers}
    return [_item_answer(item, index, headers) for index, item in enumerate(items)]


def _item_answer(item: object, index: int, headers: Mapping[str, str]) -> Answer:
    if not isinstance(item, dict) or item.get("index") != index:
        raise BadAnswer(f"item {index} of the batch is missing from its answer")
    status = item.get("status")
    if not isinstance(status, int):
        raise BadAnswer(f"item {index} of the batch has no status")
    members = item.get("result") if "result" in item else item.get("problem")
    if item.get("replayed") is True:
        headers = {**headers, "idempotency-replayed": "true"}
    members = members if isinstance(members, dict) else {}
    return Answer(status=status, headers=headers, body=b"", members=members)


def _success(answer: Answer, expected: set[int]) -> Members:
    members = _object_or_none(answer.body) if answer.members is None else answer.members
    if answer.status in expected and members is not None:
        return members
    error = _error(answer, members)
    error.retry_after_seconds = _retry_after(answer)
    raise error


def _error(answer: Answer, members: Members | None) -> OutboxError:
    if members is not None and isinstance(members.get("code"), str) and answer.status >= 400:
        return error_of(_problem(answer.status, members))
    if answer.status in GATEWAY_STATUSES:
        return ServiceUnreachable(f"HTTP {answer.status} from a proxy in front of the service")
    return BadAnswer(f"HTTP {answer.status} with a body that does not come from the service")


def _problem(status: int, members: Members) -> Problem:
    errors = members.get("errors")
    return Problem(
        status=status,
        code=_text(members, "code"),
        title=_text_or_none(members, "title") or "",
        detail=_text_or_none(members, "detail") or "",
        retryable=members.get("retryable") is True or status in GATEWAY_STATUSES,
        request_id=_text_or_none(members, "request_id"),
        errors=tuple(errors) if isinstance(errors, list) else (),
        members=members,
    )


def _retry_after(answer: Answer) -> float | None:
    seconds = answer.headers.get("retry-after", "")
    return float(seconds) if seconds.isascii() and seconds.isdigit() else None


def _publication(value: object) -> Publication | None:
    if not isinstance(value, dict):
        return None
    partition, offset = value.get("partition"), value.get("offset")
    if not isinstance(partition, int) or not isinstance(offset, int):
        raise BadAnswer("the answer's publication has no partition or offset")
    return Publication(
        topic=_text(value, "topic"),
        partition=partition,
        offset=offset,
        published_at=_time_or_none(value, "published_at"),
    )


def _decision(members: Members) -> LocalTransactionState | None:
    decision = _text_or_none(members, "decision")
    if decision is None:
        return None
    if decision not in ("COMMIT", "ROLLBACK"):
        raise BadAnswer("the answer's decision is neither COMMIT nor ROLLBACK")
    return LocalTransactionState(decision)


def _object_or_none(body: bytes) -> Members | None:
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def _text(members: Members, name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str):
        raise BadAnswer(f"the answer has no {name}")
    return value


def _text_or_none(members: Members, name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) else None


def _time(members: Members, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_text(members, name))
    except ValueError as error:
        raise BadAnswer(f"the answer's {name} is not a time") from error


def _time_or_none(members: Members, name: str) -> datetime | None:
    return None if members.get(name) is None else _time(members, name)


def _text_or_base64(name: str, value: object) -> dict[str, object]:
    if isinstance(value, bytes):
        return {f"{name}_base64": b64encode(value).decode("ascii")}
    return {name: value}


def _header(value: object) -> object:
    return {"base64": b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _json(value: object) -> bytes:
    try:
        return _TEXT.encode(value).encode()
    except UnicodeEncodeError:  # an unpaired surrogate: escaped, so that the service can refuse it
        return _ESCAPED.encode(value).encode()
