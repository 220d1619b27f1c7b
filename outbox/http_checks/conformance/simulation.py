"""Sends the conformance cases to an endpoint, one after the other, and judges each answer.

The messages of these checks were never prepared, so no answer decides anything. An endpoint with a
barrier records them as fenced.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from outbox.checks.check_round import Answer, Outcome
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import Clock
from outbox.http_checks.classification import HttpAnswer
from outbox.http_checks.conformance.cases import ConformanceCase, TestedEndpoint, cases
from outbox.http_checks.request import CheckRequest

NOT_SENT: Final = frozenset({Outcome.UNREACHABLE, Outcome.BLOCKED})
"""After one of these no other case would tell more."""


class EndpointCalls(Protocol):
    """Makes one call of a check endpoint."""

    async def call(self, group: ProducerGroup, request: CheckRequest) -> HttpAnswer | Answer:
        """Return the complete answer, or the reason why there is none."""


class SecretInvalid(ValueError):
    """The secret is not `whsec_` followed by base64."""


class EndpointSilent(Exception):
    """The endpoint cannot be called at all; ``outcome`` is unreachable or blocked."""

    def __init__(self, outcome: Outcome, error: str) -> None:
        super().__init__(error)
        self.outcome = outcome
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of one case; ``why`` is empty when it passed."""

    case: str
    passed: bool
    milliseconds: int
    why: str = ""


def planned(subject: TestedEndpoint, *, batch: bool) -> tuple[ConformanceCase, ...]:
    """Return the cases in sending order. Raises SecretInvalid."""
    if not all(secret.startswith("whsec_") for secret in subject.group.secrets):
        raise SecretInvalid("the secret must be whsec_ followed by base64")
    try:
        return cases(subject, batch=batch)
    except Exception as error:  # an error of the signing library or of base64
        raise SecretInvalid("the secret must be whsec_ followed by base64") from error


async def simulate(
    calls: EndpointCalls,
    subject: TestedEndpoint,
    sent: tuple[ConformanceCase, ...],
    clock: Clock,
) -> AsyncIterator[CaseResult]:
    """Yield the result of each case. Raises EndpointSilent."""
    # The longer answers of a batch are read whole, whatever the group asks for otherwise.
    group = replace(subject.group, batch_check=True)
    for case in sent:
        began = clock.monotonic()
        answer = await calls.call(group, case.request)
        milliseconds = round((clock.monotonic() - began) * 1000)
        why = _why(case, answer, group.check_timeout_seconds)
        yield CaseResult(
            case=case.name, passed=why is None, milliseconds=milliseconds, why=why or ""
        )


def _why(case: ConformanceCase, answer: HttpAnswer | Answer, seconds: int) -> str | None:
    """Return why a case failed; None if it passed."""
    if isinstance(answer, HttpAnswer):
        return case.judge(answer)
    if answer.outcome in NOT_SENT:
        raise EndpointSilent(answer.outcome, answer.error or answer.outcome.value)
    return f"no answer within {seconds} s"
