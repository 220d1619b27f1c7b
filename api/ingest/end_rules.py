"""The rules of an end that a schema cannot express. Pure: no I/O."""

from __future__ import annotations

from msgspec import UNSET

from api.http.problems import Problem, invalid
from api.ingest.prepare_rules import CONTROLS
from api.ingest.schemas import EndRequest
from outbox.errors import InvalidMessageId
from outbox.messages.message import End
from outbox.messages.message_id import parse_message_id


def end_of(message_id: str, request: EndRequest, groups: frozenset[int] | None) -> End | Problem:
    """Return the decision to store, or the first rule that the request breaks."""
    try:
        half_id, nonce = parse_message_id(message_id)
    except InvalidMessageId:
        return Problem(slug="message-not-found")
    if request.reason and "\x00" in request.reason:
        return invalid("/reason", "holds a NUL character")
    if request.transaction_id and CONTROLS.search(request.transaction_id):
        return invalid("/transaction_id", "holds a control character")
    return End(
        half_id=half_id,
        nonce=nonce,
        decision=request.decision,
        groups=groups,
        transaction_id=None if request.transaction_id is UNSET else request.transaction_id,
        reason=None if request.reason is UNSET else request.reason,
    )
