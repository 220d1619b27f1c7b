"""Every error a caller can see: one table from slug to status and words (RFC 9457).

A problem never carries a stack trace, a secret or the caller's own input; its ``detail`` is written
here or by the rule that refused, never copied from a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from outbox.errors import (
    DatabaseUnavailable,
    GroupInUse,
    MessageNotFound,
    NotRecheckable,
    OutboxError,
    Overloaded,
    PreconditionFailed,
    PreconditionRequired,
    UnknownGroup,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRYABLE_STATUSES: Final = frozenset({429, 503})
DATABASE_RETRY_SECONDS: Final = 2
"""How long a caller should wait for PostgreSQL before it asks again."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its HTTP status, its title and what a caller should do about it."""

    status: int
    title: str
    meaning: str


KINDS: Final[dict[str, Kind]] = {
    "malformed-json": Kind(
        400, "The body is not JSON", "Send one JSON document in UTF-8, at most 16 levels deep."
    ),
    "malformed-request": Kind(400, "The request is not HTTP", "Send a valid HTTP/1.1 request."),
    "cursor-invalid": Kind(
        400, "The cursor is not one of ours", "Start again without `cursor`; never build one."
    ),
    "unauthenticated": Kind(
        401, "No valid API key", "Send `Authorization: Bearer <key>` with a key not yet expired."
    ),
    "scope-missing": Kind(403, "The key lacks a scope", "Use a key that has the scope named."),
    "topic-not-allowed": Kind(
        403, "The producer group may not write this topic", "Extend the group's `topics`."
    ),
    "half-messages-refused": Kind(
        403, "Prepares are refused for now", "An operator is draining this installation (P12)."
    ),
    "csrf-refused": Kind(403, "The form was not sent by our page", "Load the page and try again."),
    "not-found": Kind(404, "Nothing is here", "Check the path against /openapi.json."),
    "message-not-found": Kind(
        404, "No such message", "Never prepared, retired, or another group's: all look alike (P18)."
    ),
    "unknown-group": Kind(
        404, "No such producer group", "Register it with PUT /v1/producer-groups/{producer_group}."
    ),
    "run-not-found": Kind(404, "No such reconciliation", "List the runs first."),
    "method-not-allowed": Kind(
        405, "The path does not take this method", "See `Allow` and /openapi.json."
    ),
    "request-timeout": Kind(
        408, "The request did not arrive in time", "Send headers within 10 s, the body within 30 s."
    ),
    "already-ended": Kind(
        409, "Decided the other way", "The first decision stands for ever; it is named here (G2)."
    ),
    "not-recheckable": Kind(409, "Already decided", "There is nothing left to ask."),
    "group-in-use": Kind(
        409, "The group has unfinished messages", "End or publish them, then delete the group."
    ),
    "precondition-failed": Kind(
        412, "Changed since you read it", "GET it again and repeat with the new ETag."
    ),
    "payload-too-large": Kind(413, "Too many bytes", "See the limits in the documentation."),
    "batch-too-large": Kind(413, "Too many items", "Send at most 1000 items in one batch."),
    "uri-too-long": Kind(414, "The URL is too long", "Keep it below 8 KiB."),
    "unsupported-media-type": Kind(
        415, "Not application/json", "Send `Content-Type: application/json`."
    ),
    "invalid-request": Kind(
        422, "The request breaks a rule", "`errors` points at each member and says the rule."
    ),
    "transaction-id-reused": Kind(
        422, "The transaction id names another message", "Repeat the first prepare unchanged (P6)."
    ),
    "idempotency-key-mismatch": Kind(
        422, "Idempotency-Key and transaction_id differ", "Send one of them, or both equal."
    ),
    "topic-reserved": Kind(422, "The topic is reserved", "Choose an ordinary topic (P11)."),
    "unknown-topic": Kind(422, "Kafka has no such topic", "Create it, then prepare again."),
    "header-reserved": Kind(
        422, "A header name is reserved", "Choose a name outside `outbox_` and `webhook-`."
    ),
    "partition-out-of-range": Kind(
        422, "The topic has fewer partitions", "Leave `partition` out or choose a lower one."
    ),
    "delay-not-supported": Kind(
        422, "A half message cannot be delayed", "Leave the delay out: it is never dropped (P14)."
    ),
    "check-url-forbidden": Kind(
        422, "Checks may not go there", "`rule` names the reason; an operator may allow the target."
    ),
    "filter-too-broad": Kind(422, "The filter is too broad", "Narrow it."),
    "precondition-required": Kind(
        428, "If-Match is required", "GET the group and send its ETag, or `*`."
    ),
    "rate-limited": Kind(429, "Too many requests", "Wait as long as `Retry-After` says."),
    "headers-too-large": Kind(431, "The headers are too large", "Keep them below 16 KiB."),
    "internal-error": Kind(500, "Our mistake", "Report it with the `request_id`."),
    "overloaded": Kind(
        503, "At the limit of waiting requests", "Nothing was stored; try again (P25)."
    ),
    "database-unavailable": Kind(
        503, "PostgreSQL does not answer", "The outcome is open: repeat the same request."
    ),
    "not-ready": Kind(503, "Not ready", "`checks` says which part is missing."),
}


@dataclass(slots=True, kw_only=True, eq=False)
class Problem(Exception):
    """One refusal: its slug, what to say, and the facts that go with it.

    ``errors`` are (JSON pointer, message) pairs; ``facts`` are further members of the document.
    """

    slug: str
    detail: str | None = None
    errors: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    retry_after_seconds: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status of this kind of problem."""
        return KINDS[self.slug].status


def invalid(pointer: str, message: str, slug: str = "invalid-request") -> Problem:
    """Return the refusal of one member of a body or of one parameter."""
    return Problem(slug=slug, detail=message, errors=((pointer, message),))


def document(problem: Problem, request_id: str) -> dict[str, Any]:
    """Return the members of the problem document, in the order that people read them."""
    kind = KINDS[problem.slug]
    members: dict[str, Any] = {
        "type": f"/problems/{problem.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail or kind.meaning,
        "instance": f"urn:outbox:request:{request_id}",
        "code": problem.slug,
        "retryable": kind.status in RETRYABLE_STATUSES,
        "request_id": request_id,
    }
    if problem.errors:
        members["errors"] = [{"pointer": at, "message": text} for at, text in problem.errors]
    return members | dict(problem.facts)


def body_of(problem: Problem, request_id: str) -> bytes:
    """Return the problem document as JSON."""
    return msgspec.json.encode(document(problem, request_id))


def headers_of(problem: Problem) -> dict[str, str]:
    """Return the headers that go with a problem; 429 and 503 always say when to try again."""
    headers = {"content-type": MEDIA_TYPE, **problem.headers}
    wait = problem.retry_after_seconds
    if wait is None and problem.status in RETRYABLE_STATUSES:
        wait = 1
    if wait is not None:
        headers["retry-after"] = str(wait)
    return headers


SLUG_OF: Final[dict[type[OutboxError], str]] = {
    DatabaseUnavailable: "database-unavailable",
    Overloaded: "overloaded",
    UnknownGroup: "unknown-group",
    GroupInUse: "group-in-use",
    PreconditionFailed: "precondition-failed",
    PreconditionRequired: "precondition-required",
    MessageNotFound: "message-not-found",
    NotRecheckable: "not-recheckable",
}
"""What a caller sees of the library's errors; any other one is our mistake."""


def problem_of(error: OutboxError) -> Problem:
    """Turn an error of the library into the problem a caller sees."""
    slug = SLUG_OF.get(type(error), "internal-error")
    wait = DATABASE_RETRY_SECONDS if isinstance(error, DatabaseUnavailable) else None
    if isinstance(error, Overloaded):
        wait = error.retry_after_seconds
    return Problem(slug=slug, retry_after_seconds=wait)
