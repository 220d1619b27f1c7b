"""Classifies the HTTP answer to a check: one valid verdict for the id that was asked, or none.

Every row of the classification table (docs/check-endpoint.md) is decided only here. A
substring or only a status is never a verdict: an answer that is not exactly a verdict is UNKNOWN
or an error class. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from outbox.checks.check_round import Answer, Outcome

LONGEST_DELAY_SECONDS: Final = 3600
LONGEST_REASON: Final = 500
RETRY_AFTER_STATUSES: Final = frozenset({429, 502, 503, 504})

_OUTCOME_OF: Final = {
    "COMMIT": Outcome.COMMIT,
    "ROLLBACK": Outcome.ROLLBACK,
    "UNKNOWN": Outcome.UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """A complete HTTP answer; ``body`` is None if it is longer than the limit, or not read."""

    status: int
    content_type: str = ""
    content_encoding: str = ""
    retry_after: str | None = None
    date: str | None = None
    body: bytes | None = None


def classify(answer: HttpAnswer, message_id: str) -> Answer:
    """Return the Answer of a single check for the message that was asked."""
    if answer.status != 200:
        return _without_verdict(answer)
    document = _document(answer)
    if isinstance(document, str):
        return _bad(document)
    return _verdict(document, message_id)


def classify_batch(answer: HttpAnswer, message_ids: Sequence[str]) -> list[Answer]:
    """Return the Answer of a batch for each message, in the order of the request.

    A missing id, or an id with two different verdicts, is bad for that message only. Verdicts on
    ids that were not asked for decide nothing.
    """
    if answer.status != 200:
        return [_without_verdict(answer)] * len(message_ids)
    document = _document(answer)
    verdicts = document if isinstance(document, str) else document.get("verdicts")
    if isinstance(verdicts, str):
        return [_bad(verdicts)] * len(message_ids)
    if not isinstance(verdicts, list):
        return [_bad("no_verdicts")] * len(message_ids)
    by_id = _by_id(verdicts)
    return [_batch_item(by_id.get(each, []), each) for each in message_ids]


def _without_verdict(answer: HttpAnswer) -> Answer:
    return Answer(
        outcome=Outcome.HTTP_ERROR,
        http_status=answer.status,
        retry_after_seconds=_retry_after(answer),
        error="redirect" if 300 <= answer.status < 400 else "status",
    )


def _retry_after(answer: HttpAnswer) -> int | None:
    """Return Retry-After, at most an hour; a date counts from the answer's own Date header."""
    text = answer.retry_after
    if text is None or answer.status not in RETRY_AFTER_STATUSES:
        return None
    if text.isascii() and text.isdigit():
        return min(int(text[:10]), LONGEST_DELAY_SECONDS)
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(answer.date or "")
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(int(wait.total_seconds()), 0), LONGEST_DELAY_SECONDS)


def _document(answer: HttpAnswer) -> dict[str, Any] | str:
    """Return the JSON object of a 200, or the error class of another body."""
    if answer.body is None:
        return "too_long"
    if answer.content_encoding not in ("", "identity"):
        return "encoded"
    if answer.content_type.partition(";")[0].strip().lower() != "application/json":
        return "content_type"
    try:
        document = json.loads(
            answer.body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse
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


def _verdict(document: Mapping[str, Any], message_id: str) -> Answer:
    if document.get("message_id") != message_id:
        return _bad("wrong_id")
    decision, reason = document.get("decision"), document.get("reason")
    outcome = _OUTCOME_OF.get(decision) if isinstance(decision, str) else None
    if outcome is None:
        return _bad("decision")
    if not isinstance(reason, str | None):
        return _bad("reason")
    delay = document.get("retry_after_seconds") if outcome is Outcome.UNKNOWN else None
    if not _is_delay(delay):
        return _bad("retry_after_seconds")
    return Answer(
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


def _by_id(verdicts: Sequence[Any]) -> dict[str, list[Mapping[str, Any]]]:
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for verdict in verdicts:
        if isinstance(verdict, dict) and isinstance(verdict.get("message_id"), str):
            by_id.setdefault(verdict["message_id"], []).append(verdict)
    return by_id


def _batch_item(verdicts: Sequence[Mapping[str, Any]], message_id: str) -> Answer:
    if not verdicts:
        return _bad("missing_id")
    answers = [_verdict(verdict, message_id) for verdict in verdicts]
    if len({answer.outcome for answer in answers}) > 1:
        return _bad("two_decisions")
    return answers[0]


def _bad(error: str) -> Answer:
    return Answer(outcome=Outcome.BAD_VERDICT, http_status=200, error=error)
