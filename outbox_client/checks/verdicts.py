"""Verdicts: what a check endpoint answers; a doubtful case is UNKNOWN."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from outbox_client.checks.request import CheckRequest
from outbox_client.listener import Check, Unknown
from outbox_client.message import LocalTransactionState

log = logging.getLogger("outbox_client")

BODY_MAX_BYTES: Final = 16 * 1024 * 1024
CONCURRENCY: Final = 16
REPLY_MARGIN_SHARE: Final = 0.1
REASON_CHARACTERS: Final = 500
REASON_BYTES: Final = 480
"""As JSON: the service reads 64 KiB of the answer to 100 checks, and an answer with one byte more
decides none of them."""
SHORTENED_CHARACTERS: Final = REASON_BYTES // 12 - 1
"""JSON takes at most twelve bytes for one."""
UNKNOWN: Final = LocalTransactionState.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The response that the adapter sends."""

    status: int
    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One decision; UNKNOWN also has a reason and a delay until the next check."""

    decision: LocalTransactionState
    reason: str | None = None
    retry_after_seconds: int | None = None


def seconds_to_answer(request: CheckRequest) -> float:
    """Return the time for all answers: nine tenths of the time until ``reply_by``."""
    return request.budget.total_seconds() * (1 - REPLY_MARGIN_SHARE)


def late(check: Check) -> Verdict:
    """Return the verdict of a listener that has not answered in time."""
    log.warning("check_answer_late", extra={"message_id": check.message_id})
    return Verdict(UNKNOWN, "no answer before reply_by")


def failed(check: Check, error: BaseException) -> Verdict:
    """Return the verdict of a listener that raised ``error``."""
    log.error("check_listener_failed", exc_info=error, extra={"message_id": check.message_id})
    return Verdict(UNKNOWN, f"the listener raised {type(error).__name__}")


def verdict_of(returned: object) -> Verdict:
    """Return what a listener returned as a verdict; whatever is not a state is UNKNOWN."""
    if returned is None:
        return Verdict(UNKNOWN)
    if isinstance(returned, Unknown):
        return Verdict(UNKNOWN, returned.reason, int(returned.retry_after_seconds))
    try:
        return Verdict(LocalTransactionState(str(returned)))
    except ValueError:
        return Verdict(UNKNOWN, "the listener returned no local transaction state")


def reply_of(request: CheckRequest, verdicts: Sequence[Verdict]) -> Reply:
    """Return the response to a call, single or batch, as it was asked."""
    items = [_item(*pair) for pair in zip(request.checks, verdicts, strict=True)]
    body = {"verdicts": items} if request.batch else items[0]
    return Reply(status=200, body=json.dumps(body).encode())


def refusal(status: int, title: str) -> Reply:
    """Return a problem+json answer that contains nothing of the request."""
    body = json.dumps({"status": status, "title": title}).encode()
    return Reply(status=status, body=body, content_type="application/problem+json")


def _item(check: Check, verdict: Verdict) -> dict[str, object]:
    item: dict[str, object] = {
        "message_id": check.message_id,
        "decision": verdict.decision.value,
    }
    if verdict.reason:
        item["reason"] = _short(verdict.reason)
    if verdict.retry_after_seconds is not None:
        item["retry_after_seconds"] = verdict.retry_after_seconds
    return item


def _short(reason: object) -> str:
    """Return a reason that leaves room for those of the other checks."""
    text = str(reason)[:REASON_CHARACTERS]
    return text if len(json.dumps(text)) <= REASON_BYTES else text[:SHORTENED_CHARACTERS]
