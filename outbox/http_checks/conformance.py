"""Tries whether a check endpoint does what the contract asks: valid, stale, forged checks.

The checker's own code builds the valid requests and reads the answers, so the service understands
an endpoint that passes here. The messages of these checks were never prepared, so no answer decides
anything. An endpoint with a barrier records them as fenced.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from outbox.checks.answer import ANSWERED, CheckAnswer, Outcome
from outbox.checks.check_round import QueueRow
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.http_checks.request import CheckRequest, check_request
from outbox.messages.message import HalfMessage, Message
from outbox.messages.message_id import NONCE_BITS, HalfId, Nonce

if TYPE_CHECKING:
    from outbox.http_checks.endpoint import HttpCheckEndpoint

WINDOW_SECONDS: Final = 300
"""Receivers refuse a timestamp that differs from their clock by more seconds."""
OTHER_SECRET: Final = "whsec_" + "QUFB" * 10 + "QUE="
NO_TRACE: Final = frozenset({Outcome.ROLLBACK, Outcome.UNKNOWN})
NOT_SENT: Final = frozenset({Outcome.UNREACHABLE, Outcome.BLOCKED})
"""After one of these no other case would tell more."""


class ConformanceCase(NamedTuple):
    """One request to send, and what the service may read in its answer to pass."""

    name: str
    request: CheckRequest
    expected: frozenset[str]
    """Outcomes, or HTTP statuses."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case; ``why`` is empty if it passed."""

    case: str
    passed: bool
    milliseconds: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedEndpoint:
    """The endpoint under test; ``known`` is a transaction that it knows, if any."""

    group: ProducerGroup
    now: datetime
    seed: int
    known: str | None = None
    expected: Outcome = Outcome.COMMIT


class SecretInvalid(ValueError):
    """The secret is not `whsec_` followed by base64."""


class EndpointSilent(Exception):
    """The endpoint cannot be called at all; ``outcome`` is unreachable or blocked."""

    def __init__(self, outcome: Outcome, error: str) -> None:
        super().__init__(error)
        self.outcome = outcome
        self.error = error


def planned(subject: TestedEndpoint, *, batch: bool) -> tuple[ConformanceCase, ...]:
    """Return the cases in sending order; single checks, then with ``batch`` the batch form.

    Raises SecretInvalid.
    """
    try:
        if not all(secret.startswith("whsec_") for secret in subject.group.secrets):
            raise ValueError
        return (*_single_checks(subject), *(_batches(subject) if batch else ()))
    except Exception as error:  # an error of the signing library or of base64
        raise SecretInvalid("the secret must be whsec_ followed by base64") from error


async def simulate(
    calls: HttpCheckEndpoint,
    subject: TestedEndpoint,
    sent: Sequence[ConformanceCase],
    clock: Clock,
) -> AsyncIterator[CaseResult]:
    """Send the cases, one after the other; yield each result. Raises EndpointSilent."""
    for case in sent:
        began = clock.monotonic()
        answers = await calls.call(subject.group, case.request)
        milliseconds = round((clock.monotonic() - began) * 1000)
        wrong = [read for read in map(_read, answers) if read not in case.expected]
        why = f"expected {_words(case.expected)}, the service reads {wrong[0]}" if wrong else ""
        yield CaseResult(case.name, not why, milliseconds, why)


def _read(answer: CheckAnswer) -> str:
    """Return the status or the outcome that the service reads in an answer, never its body."""
    if answer.outcome in NOT_SENT:
        raise EndpointSilent(answer.outcome, answer.error or answer.outcome.value)
    is_status = answer.outcome is Outcome.HTTP_ERROR
    return str(answer.http_status) if is_status else answer.outcome.value


def _words(expected: frozenset[str]) -> str:
    return " or ".join(sorted(each.upper() for each in expected))


# -- The cases -------------------------------------------------------------------------------------


def _single_checks(subject: TestedEndpoint) -> Iterator[ConformanceCase]:
    case, row = ConformanceCase, never_prepared(subject, 0)
    good = _request(subject, row)
    yield case("an unknown transaction is never COMMIT", good, NO_TRACE)
    yield case("a repeated check is answered again", good, NO_TRACE)
    if subject.known is not None:
        known = _request(subject, never_prepared(subject, 1, subject.known))
        yield case("a known transaction is decided", known, frozenset({subject.expected}))
    signatures = f"v1,{'A' * 43}= {good.headers['webhook-signature']}"
    rotated = _with(good, "webhook-signature", signatures)
    yield case("two signatures, the second fits", rotated, ANSWERED)
    far = timedelta(seconds=WINDOW_SECONDS + 60)
    stale, early = (replace(subject, now=subject.now + by) for by in (-far, far))
    kept = {name: text for name, text in good.headers.items() if not name.startswith("webhook-")}
    for name, forged in {
        "a forged signature is refused": _request(subject, row, secrets=(OTHER_SECRET,)),
        "an altered body is refused": replace(good, body=good.body.replace(b"check", b"chekk", 1)),
        "another check's signature is refused": _with(good, "webhook-id", "chk_of_another_0_1"),
        "an unsigned check is refused": replace(good, headers=kept),
        "a signature that is no base64 is refused": _with(good, "webhook-signature", "v1,***"),
        "a stale check is refused": _request(stale, row),
        "a check from the future is refused": _request(early, row),
        "a timestamp that is no number is refused": _with(good, "webhook-timestamp", "now"),
    }.items():
        yield case(name, forged, frozenset({"401"}))
    foreign = _request(subject, row, name=f"{subject.group.name}-other")
    yield case("another group's check is refused", foreign, frozenset({"403"}))


def _batches(subject: TestedEndpoint) -> Iterator[ConformanceCase]:
    for name, numbers in (
        ("a batch is answered for each", range(2, 5)),
        ("a batch of 100 is answered", range(100, 200)),
    ):
        rows = [never_prepared(subject, number) for number in numbers]
        yield ConformanceCase(name, _request(subject, *rows, batch_check=True), NO_TRACE)


def never_prepared(
    subject: TestedEndpoint, number: int, transaction_id: str | None = None
) -> QueueRow:
    """Return the check of a message that was never prepared."""
    message = Message(
        topic="simulated",
        value=b"",
        key=f"key-{number}".encode(),
        producer_group=subject.group.name,
        producer_group_id=0,
        topic_id=0,
        transaction_id=transaction_id or f"simulated-{subject.seed:x}-{number}",
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


def _request(subject: TestedEndpoint, *rows: QueueRow, **changed: Any) -> CheckRequest:
    """Return the request that the checker sends; ``changed`` are other fields of the group."""
    unique = f"{(subject.seed * 2654435761 + len(rows)) % (1 << 128):032x}"
    group = replace(subject.group, **{"batch_check": False, **changed})
    return check_request(group, rows, subject.now, unique)


def _with(request: CheckRequest, header: str, value: str) -> CheckRequest:
    return replace(request, headers={**request.headers, header: value})
