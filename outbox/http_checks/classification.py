"""Classifies the HTTP answer to a check: one valid verdict for the id that was asked, or none.

Every row of the classification table (docs/check-endpoint.md) is decided only here. A
substring or only a status is never a verdict: an answer that is not exactly a verdict is UNKNOWN
or an error class. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final

from outbox.checks.answer import CheckAnswer, Outcome
from outbox.http_checks.request import CheckRequest

LONGEST_DELAY_SECONDS: Final = 3600
LONGEST_REASON: Final = 500
RETRY_AFTER_STATUSES: Final = frozenset({429, 502, 503, 504})


def classify(
    status: int, headers: Mapping[str, str], body: bytes | None, request: CheckRequest
) -> list[CheckAnswer]:
    """Return the CheckAnswer about each message of a request, in order.

    ``body`` is None if it is longer than the limit, or not read. In a batch, a missing id, or an id
    with two different verdicts, is bad for that message only. Verdicts on ids that were not asked
    for decide nothing.
    """
    ids = request.message_ids
    if status != 200:
        return [_without_verdict(status, headers)] * len(ids)
    document = _document(headers, body)
    if isinstance(document, str):
        return [_bad(document)] * len(ids)
    verdicts = document.get("verdicts") if request.batch else [document]
    if not isinstance(verdicts, list):
        return [_bad("no_verdicts")] * len(ids)
    by_id: dict[str, list[CheckAnswer]] = {}
    for verdict in verdicts:
        if isinstance(verdict, dict) and isinstance(verdict.get("message_id"), str):
            by_id.setdefault(verdict["message_id"], []).append(_verdict(verdict))
    return [_only(by_id.get(each, [])) for each in ids]


def _without_verdict(status: int, headers: Mapping[str, str]) -> CheckAnswer:
    return CheckAnswer(
        outcome=Outcome.HTTP_ERROR,
        http_status=status,
        retry_after_seconds=_retry_after(headers) if status in RETRY_AFTER_STATUSES else None,
        error="redirect" if 300 <= status < 400 else "status",
    )


def _retry_after(headers: Mapping[str, str]) -> int | None:
    """Return Retry-After, at most an hour; a date counts from the answer's own Date header."""
    text = headers.get("Retry-After", "")
    if text.isascii() and text.isdigit():
        return min(int(text[:10]), LONGEST_DELAY_SECONDS)
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(int(wait.total_seconds()), 0), LONGEST_DELAY_SECONDS)


def _document(headers: Mapping[str, str], body: bytes | None) -> dict[str, Any] | str:
    """Return the JSON object of a 200, or the error class of another body."""
    if body is None:
        return "too_long"
    if headers.get("Content-Encoding", "") not in ("", "identity"):
        return "encoded"
    media_type = headers.get("Content-Type", "").partition(";")[0]
    if media_type.strip().lower() != "application/json":
        return "content_type"
    try:
        document = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        return "json"
    return document if isinstance(document, dict) else "not_an_object"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member name is repeated")
    return members


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _verdict(document: Mapping[str, Any]) -> CheckAnswer:
    """Return the CheckAnswer of one verdict, whatever message it names."""
    decision, reason = document.get("decision"), document.get("reason")
    if decision not in ("COMMIT", "ROLLBACK", "UNKNOWN"):
        return _bad("decision")
    outcome = Outcome[decision]
    if not isinstance(reason, str | None):
        return _bad("reason")
    delay = document.get("retry_after_seconds") if outcome is Outcome.UNKNOWN else None
    if not _is_delay(delay):
        return _bad("retry_after_seconds")
    return CheckAnswer(
        outcome=outcome,
        http_status=200,
        retry_after_seconds=None if delay is None else int(delay),
        reason=_storable(reason),
    )


def _is_delay(value: object) -> bool:
    """Return whether it is null or an integer in the sense of JSON Schema, where 3.0 is one."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= LONGEST_DELAY_SECONDS and value == int(value)


def _storable(reason: str | None) -> str | None:
    """Shorten a reason to the limit and remove what PostgreSQL's text cannot store."""
    if reason is None:
        return None
    cleaned = reason.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    return cleaned[:LONGEST_REASON]


def _only(answers: Sequence[CheckAnswer]) -> CheckAnswer:
    """Return the answer to one message: the first, unless another one differs in its outcome."""
    if not answers:
        return _bad("missing_id")
    if len({answer.outcome for answer in answers}) > 1:
        return _bad("two_decisions")
    return answers[0]


def _bad(error: str) -> CheckAnswer:
    return CheckAnswer(outcome=Outcome.BAD_VERDICT, http_status=200, error=error)
