"""Every error a caller can see: one table from slug to status and text (RFC 9457).

A problem never contains a stack trace, a secret or the caller's own input, but for a name that
has the form of one. Its ``detail`` is written here or by the rule that refused: it names each
member that breaks a rule, and the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec

from outbox.errors import (
    ConfigurationError,
    DatabaseRefused,
    DatabaseUnavailable,
    GroupInUse,
    KafkaForbidden,
    KafkaUnavailable,
    MessageNotFound,
    NotHeld,
    NotRecheckable,
    OutboxError,
    Overloaded,
    PreconditionFailed,
    PreconditionRequired,
    SchemaBehind,
    ScopeMissing,
    UnknownGroup,
)
from outbox.telemetry.events import Event, get_logger

MEDIA_TYPE: Final = "application/problem+json"
WAITING_STATUSES: Final = frozenset({429, 503})
"""They always have ``Retry-After``: nothing was done, and the same request may succeed later."""
DATABASE_RETRY_SECONDS: Final = 2
"""How long a caller should wait for PostgreSQL before it tries again."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One kind of problem: its HTTP status, its title and its remedy for the caller."""

    status: int
    title: str
    meaning: str


KINDS: Final[dict[str, ProblemKind]] = {
    "malformed-json": ProblemKind(400, "The body is not JSON", "Send one JSON document in UTF-8."),
    "cursor-invalid": ProblemKind(
        400, "The cursor is not valid", "Start again without `cursor`; never build one."
    ),
    "unauthenticated": ProblemKind(
        401,
        "No valid API key",
        "Send the header `Authorization` (scheme Bearer) with a key that is neither expired nor"
        " revoked.",
    ),
    "scope-missing": ProblemKind(
        403, "The key lacks a scope", "Use a key with the scope in `detail`."
    ),
    "topic-not-allowed": ProblemKind(
        403,
        "The topic may not be written",
        "Extend the group's `topics`, or grant the relay's Kafka principal WRITE: see `detail`.",
    ),
    "half-messages-refused": ProblemKind(
        403, "Prepares are refused for now", "An operator is draining this installation."
    ),
    "csrf-refused": ProblemKind(
        403,
        "The form was not sent by the console",
        "Load the page and try again. A proxy must pass on `Host` as the browser sent it, with its"
        " port.",
    ),
    "not-found": ProblemKind(404, "Nothing at this path", "Compare the path with /openapi.json."),
    "message-not-found": ProblemKind(
        404,
        "No such message",
        "Never prepared, retired, or of another group; these cases are not distinguished.",
    ),
    "unknown-group": ProblemKind(
        404, "No such producer group", "Register it with PUT /v1/producer-groups/{producer_group}."
    ),
    "run-not-found": ProblemKind(404, "No such reconciliation", "List the runs first."),
    "method-not-allowed": ProblemKind(
        405, "The path does not support this method", "See `Allow` and /openapi.json."
    ),
    "already-ended": ProblemKind(
        409,
        "Already decided",
        "The first decision is final, see `winning_decision`; nothing was changed. If the local"
        " transaction ended otherwise, compensate for it.",
    ),
    "follows-another": ProblemKind(
        409,
        "Another message decides",
        "Send it for the message in `leader_id`, the first of the decision; nothing was changed.",
    ),
    "not-recheckable": ProblemKind(
        409, "Already decided", "A decided message is not checked any more."
    ),
    "not-held": ProblemKind(409, "The record is not held", "It was released or given up already."),
    "group-in-use": ProblemKind(
        409, "The group has unfinished messages", "End or publish them, then delete the group."
    ),
    "precondition-failed": ProblemKind(
        412, "Changed since you read it", "GET it again and repeat the request with the new ETag."
    ),
    "payload-too-large": ProblemKind(413, "Too many bytes", "`detail` names the limit."),
    "batch-too-large": ProblemKind(
        413, "Too many items", "Send at most 1000 messages in one batch."
    ),
    "unsupported-media-type": ProblemKind(
        415, "Not application/json", "Send `Content-Type: application/json`."
    ),
    "invalid-request": ProblemKind(
        422,
        "The request breaks a rule",
        "`errors` has a pointer and a message for each broken rule.",
    ),
    "transaction-id-reused": ProblemKind(
        422,
        "The transaction id belongs to another message",
        "Repeat the first prepare unchanged, or send a new `transaction_id`.",
    ),
    "idempotency-key-mismatch": ProblemKind(
        422, "Idempotency-Key and transaction_id differ", "Send one of them, or both equal."
    ),
    "topic-reserved": ProblemKind(
        422, "The topic is reserved", "Choose a topic that is not reserved."
    ),
    "unknown-topic": ProblemKind(
        422, "Kafka shows no such topic", "Create it, then prepare again."
    ),
    "header-reserved": ProblemKind(
        422,
        "A header name is reserved",
        "Reserved are `content-type`, `traceparent`, `tracestate`, and names that begin with"
        " `outbox_` or `webhook-`.",
    ),
    "partition-out-of-range": ProblemKind(
        422, "The topic has fewer partitions", "Omit `partition` or choose a lower one."
    ),
    "delay-not-supported": ProblemKind(
        422, "A half message cannot be delayed", "Omit the delay: it is never ignored silently."
    ),
    "check-url-forbidden": ProblemKind(
        422,
        "The check URL is not allowed",
        "`rule` is the reason; an operator may allow the target.",
    ),
    "filter-too-broad": ProblemKind(422, "The filter is too broad", "Narrow it."),
    "precondition-required": ProblemKind(
        428, "If-Match is required", "GET the group and send its ETag, or `*`."
    ),
    "rate-limited": ProblemKind(429, "Too many requests", "Wait for the seconds in `Retry-After`."),
    "internal-error": ProblemKind(500, "Internal error", "Report it with the `request_id`."),
    "overloaded": ProblemKind(503, "Too many waiting requests", "Nothing was stored; try again."),
    "database-unavailable": ProblemKind(
        503, "PostgreSQL does not answer", "The result is unknown: repeat the same request."
    ),
    "not-ready": ProblemKind(503, "Not ready", "`checks` shows which part is not ready."),
}


@dataclass(slots=True, kw_only=True, eq=False)
class Problem(Exception):
    """One refusal: its slug, its detail, and further facts.

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
    return all_invalid(((pointer, message),), slug)


def all_invalid(broken: Sequence[tuple[str, str]], slug: str = "invalid-request") -> Problem:
    """Return the refusal of all members whose rules are broken; each rule follows its member."""
    said = [f"{at[1:].replace('/', '.') or 'the request'} {rule}" for at, rule in broken]
    return Problem(slug=slug, detail="; ".join(said), errors=tuple(broken))


def document(problem: Problem, request_id: str) -> dict[str, Any]:
    """Return the members of the problem document, in reading order."""
    kind = KINDS[problem.slug]
    members: dict[str, Any] = {
        "type": f"/problems/{problem.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail or kind.meaning,
        "instance": f"urn:outbox:request:{request_id}",
        "code": problem.slug,
        "retryable": kind.status in WAITING_STATUSES,
        "request_id": request_id,
    }
    if problem.errors:
        members["errors"] = [{"pointer": at, "message": text} for at, text in problem.errors]
    return members | dict(problem.facts)


def body_of(problem: Problem, request_id: str) -> bytes:
    """Return the problem document as JSON."""
    return msgspec.json.encode(document(problem, request_id))


def headers_of(problem: Problem) -> dict[str, str]:
    """Return the headers of a problem; 429 and 503 always have ``Retry-After``."""
    headers = {"content-type": MEDIA_TYPE, **problem.headers}
    wait = problem.retry_after_seconds
    if wait is None and problem.status in WAITING_STATUSES:
        wait = 1
    if wait is not None:
        headers["retry-after"] = str(wait)
    return headers


BEHIND: Final = "the database lacks a migration of this version: run `outbox migrate up`"
SLUG_OF: Final[dict[type[OutboxError], str]] = {
    DatabaseUnavailable: "database-unavailable",
    DatabaseRefused: "database-unavailable",
    SchemaBehind: "not-ready",
    KafkaUnavailable: "not-ready",
    KafkaForbidden: "not-ready",
    Overloaded: "overloaded",
    ScopeMissing: "scope-missing",
    UnknownGroup: "unknown-group",
    GroupInUse: "group-in-use",
    PreconditionFailed: "precondition-failed",
    PreconditionRequired: "precondition-required",
    MessageNotFound: "message-not-found",
    NotRecheckable: "not-recheckable",
    NotHeld: "not-held",
}
"""The slug of each library error that callers see; any other one is an internal error."""


def problem_of(error: OutboxError, request_id: str | None = None) -> Problem:
    """Turn an error of the library into the problem a caller sees.

    A refusal of PostgreSQL is logged once: only an administrator can end it. An internal error is
    logged each time.
    """
    slug = SLUG_OF.get(type(error), "internal-error")
    problem = Problem(slug=slug)
    if isinstance(error, DatabaseUnavailable):
        problem.retry_after_seconds = DATABASE_RETRY_SECONDS
    match error:
        case DatabaseRefused():
            _log_refusal(str(error))
        case SchemaBehind():
            problem.detail = BEHIND
            problem.facts = {"checks": {"migrations": "behind"}}
        case KafkaUnavailable():
            forbidden = isinstance(error, KafkaForbidden)
            problem.detail = str(error) if forbidden else "Kafka does not answer"
            problem.facts = {"checks": {"kafka": "unavailable"}}
        case Overloaded():
            problem.retry_after_seconds = error.retry_after_seconds
        case ScopeMissing() | ConfigurationError():
            problem.detail = str(error)
    if slug == "internal-error":
        get_logger().error(Event.INTERNAL_ERROR, error=str(error), request_id=request_id)
    return problem


@lru_cache(maxsize=100)
def _log_refusal(error: str) -> None:
    """Log once what PostgreSQL refuses; a trigger may word each refusal anew."""
    get_logger().error(Event.DATABASE_REFUSED, error=error)
