"""Conformance cases of a check endpoint: the requests to send and the answers they require.

The checker's own code builds the valid requests and reads the answers, so the service understands
an endpoint that passes here. Pure: time and randomness are parameters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from outbox.checks.check_round import Outcome
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import QueueRow
from outbox.http_checks.classification import HttpAnswer, classify, classify_batch
from outbox.http_checks.request import CheckRequest, check_request
from outbox.messages.message import Content, HalfMessage, Message
from outbox.messages.message_id import NONCE_BITS, HalfId, Nonce

WINDOW_SECONDS: Final = 300
"""Receivers refuse a timestamp that differs from their clock by more seconds."""
OTHER_SECRET: Final = "whsec_" + "QUFB" * 10 + "QUE="
HTTP_OK: Final = 200
VERDICTS: Final = frozenset({Outcome.COMMIT, Outcome.ROLLBACK, Outcome.UNKNOWN})
NO_TRACE: Final = frozenset({Outcome.ROLLBACK, Outcome.UNKNOWN})

Judge = Callable[[HttpAnswer], str | None]
"""Return what is wrong with an answer, or None when it is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceCase:
    """One request to send, and the judge of its answer."""

    name: str
    request: CheckRequest
    judge: Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedEndpoint:
    """The endpoint under test; ``known`` is a transaction that it knows, if any."""

    group: ProducerGroup
    now: datetime
    seed: int
    known: str | None = None
    expected: Outcome | None = None


def cases(subject: TestedEndpoint, *, batch: bool) -> tuple[ConformanceCase, ...]:
    """Return the cases in sending order; single checks, then with ``batch`` the batch form."""
    subject = replace(subject, group=replace(subject.group, batch_check=False))
    good = _request(subject, never_prepared(subject, 0))
    return (
        ConformanceCase(
            name="an unknown transaction is never COMMIT",
            request=good,
            judge=_never_commit(subject),
        ),
        ConformanceCase(
            name="a repeated check is answered again", request=good, judge=_never_commit(subject)
        ),
        *_known(subject),
        ConformanceCase(
            name="two signatures, the second fits",
            request=_rotated(good),
            judge=_decides(subject),
        ),
        *_forgeries(subject, good),
        *_foreign(subject),
        *(_batches(subject) if batch else ()),
    )


def _known(subject: TestedEndpoint) -> Sequence[ConformanceCase]:
    if subject.known is None:
        return ()
    row = never_prepared(subject, 1, subject.known)
    judge = _single(_id(row), frozenset({subject.expected or Outcome.COMMIT}))
    return (
        ConformanceCase(
            name="a known transaction is decided", request=_request(subject, row), judge=judge
        ),
    )


def _forgeries(subject: TestedEndpoint, good: CheckRequest) -> Sequence[ConformanceCase]:
    """Return requests that the endpoint must refuse with 401."""
    forged = replace(subject, group=replace(subject.group, secrets=(OTHER_SECRET,)))
    row = never_prepared(subject, 0)
    far = timedelta(seconds=WINDOW_SECONDS + 60)
    sent = {
        "a forged signature is refused": _request(forged, row),
        "an altered body is refused": replace(good, body=good.body.replace(b"check", b"chekk", 1)),
        "another check's signature is refused": _with(good, "webhook-id", "chk_of_another_0_1"),
        "an unsigned check is refused": _without(good, "webhook-"),
        "a signature that is no base64 is refused": _with(good, "webhook-signature", "v1,***"),
        "a stale check is refused": _request(replace(subject, now=subject.now - far), row),
        "a check from the future is refused": _request(
            replace(subject, now=subject.now + far), row
        ),
        "a timestamp that is no number is refused": _with(good, "webhook-timestamp", "now"),
    }
    return [
        ConformanceCase(name=name, request=request, judge=_refused(401))
        for name, request in sent.items()
    ]


def _foreign(subject: TestedEndpoint) -> Sequence[ConformanceCase]:
    other = replace(subject, group=replace(subject.group, name=subject.group.name + "-other"))
    request = _request(other, never_prepared(other, 0))
    return (
        ConformanceCase(
            name="another group's check is refused", request=request, judge=_refused(403)
        ),
    )


def _batches(subject: TestedEndpoint) -> Sequence[ConformanceCase]:
    asking = replace(subject, group=replace(subject.group, batch_check=True))
    few = [never_prepared(asking, number) for number in range(2, 5)]
    many = [never_prepared(asking, number) for number in range(100, 200)]
    return (
        ConformanceCase(
            name="a batch is answered for each",
            request=_request(asking, *few),
            judge=_each(few),
        ),
        ConformanceCase(
            name="a batch of 100 is answered", request=_request(asking, *many), judge=_each(many)
        ),
    )


# -- Requests --------------------------------------------------------------------------------------


def never_prepared(
    subject: TestedEndpoint, number: int, transaction_id: str | None = None
) -> QueueRow:
    """Return the check of a message that was never prepared."""
    name = transaction_id or f"simulated-{subject.seed:x}-{number}"
    content = Content(topic="simulated", value=b"", key=f"key-{number}".encode())
    message = Message(
        content=content,
        producer_group=subject.group.name,
        producer_group_id=0,
        topic_id=0,
        transaction_id=name,
    )
    half = HalfMessage(
        half_id=HalfId((number + 1) << 15),
        nonce=Nonce((subject.seed + number) % (1 << NONCE_BITS)),
        message=message,
        prepared_at=subject.now - timedelta(seconds=36),
        content_digest=0,
    )
    return QueueRow(
        look_id=0,
        delay_seconds=0,
        half_id=half.half_id,
        round=0,
        check_count=0,
        only_unknown=True,
        age_from=half.prepared_at,
        half=half,
    )


def _request(subject: TestedEndpoint, *rows: QueueRow) -> CheckRequest:
    unique = f"{(subject.seed * 2654435761 + len(rows)) % (1 << 128):032x}"
    return check_request(subject.group, rows, subject.now, unique)


def _with(request: CheckRequest, header: str, value: str) -> CheckRequest:
    return replace(request, headers={**request.headers, header: value})


def _without(request: CheckRequest, prefix: str) -> CheckRequest:
    kept = {name: text for name, text in request.headers.items() if not name.startswith(prefix)}
    return replace(request, headers=kept)


def _rotated(request: CheckRequest) -> CheckRequest:
    """Put the signature of an unknown secret before the valid one."""
    signature = request.headers["webhook-signature"]
    return _with(request, "webhook-signature", f"v1,{'A' * 43}= {signature}")


def _id(row: QueueRow) -> str:
    return str(row.readable.message_id)


# -- Judges ----------------------------------------------------------------------------------------


def _never_commit(subject: TestedEndpoint) -> Judge:
    return _single(_id(never_prepared(subject, 0)), NO_TRACE)


def _decides(subject: TestedEndpoint) -> Judge:
    return _single(_id(never_prepared(subject, 0)), VERDICTS)


def _single(message_id: str, allowed: frozenset[Outcome]) -> Judge:
    def judge(answer: HttpAnswer) -> str | None:
        return _wrong(classify(answer, message_id).outcome, answer, allowed)

    return judge


def _each(rows: Sequence[QueueRow]) -> Judge:
    ids = [_id(row) for row in rows]

    def judge(answer: HttpAnswer) -> str | None:
        outcomes = [found.outcome for found in classify_batch(answer, ids)]
        return next((wrong for it in outcomes if (wrong := _wrong(it, answer, NO_TRACE))), None)

    return judge


def _wrong(outcome: Outcome, answer: HttpAnswer, allowed: frozenset[Outcome]) -> str | None:
    if outcome in allowed:
        return None
    words = " or ".join(sorted(it.value.upper() for it in allowed))
    return f"expected {words}, the service reads {outcome.value} ({_seen(answer)})"


def _refused(status: int) -> Judge:
    def judge(answer: HttpAnswer) -> str | None:
        return None if answer.status == status else f"expected {status}, got {_seen(answer)}"

    return judge


def _seen(answer: HttpAnswer) -> str:
    """Return the status and the decision of an answer, never its body."""
    if answer.status != HTTP_OK:
        return f"{answer.status}"
    try:
        document = json.loads(answer.body or b"")
    except (ValueError, RecursionError):
        return f"{answer.status}, no JSON"
    decision = document.get("decision") if isinstance(document, dict) else None
    return f"{answer.status}, decision {decision!r}" if decision else f"{answer.status}"
