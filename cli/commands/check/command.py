"""`outbox check`: conformance tests for a check endpoint."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Annotated, Final

import httpx2
import typer

from cli.commands.check.cases import ConformanceCase, TestedEndpoint, cases
from cli.invocation.context import Context, context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_rows
from outbox.checks.check_round import Outcome
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import SystemClock
from outbox.http_checks.classification import HttpAnswer
from outbox.http_checks.endpoint import BATCH_ANSWER_BYTES

COLUMNS: Final = ("case", "passed", "milliseconds", "why")
DEFAULT_SECONDS: Final = 5


class Expected(StrEnum):
    """The decision that the endpoint must return for `--transaction-id`."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of one case; ``why`` is empty when it passed."""

    case: str
    passed: bool
    milliseconds: int
    why: str


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(help="Check endpoints.", no_args_is_help=True)
    app.callback()(lambda: None)
    app.command("simulate")(simulate)
    return app


def simulate(
    context: typer.Context,
    *,
    secret: Annotated[
        str, typer.Option(envvar="OUTBOX_CHECK_SECRET", help="The group's check secret (whsec_…).")
    ],
    producer_group: Annotated[str, typer.Option(help="Producer group of the endpoint.")],
    batch: Annotated[bool, typer.Option("--batch", help="Send batch checks too.")] = False,
    transaction_id: Annotated[
        str | None, typer.Option(help="A transaction that the endpoint knows.")
    ] = None,
    expect: Annotated[
        Expected, typer.Option(help="The decision it must return for that transaction.")
    ] = Expected.COMMIT,
    within: Annotated[
        int, typer.Option(min=1, max=60, help="Time limit of one check in seconds.")
    ] = DEFAULT_SECONDS,
) -> None:
    """Send valid, stale, forged, repeated and batch checks to the endpoint that `--url` names.

    Prints pass or fail per case and exits 1 on a fail. The messages of these checks were never
    prepared: an endpoint with a barrier records them as fenced.
    """
    invocation = context_of(context)
    if invocation.url is None:
        raise CommandFailed("--url: the check endpoint is missing", ExitCode.USAGE)
    subject = TestedEndpoint(
        group=_group(producer_group, invocation.url, secret, within),
        now=SystemClock().now(),
        seed=secrets.randbits(58),
        known=transaction_id,
        expected=Outcome[expect.value],
    )
    results = list(_run(invocation, subject, batch))
    print_rows(invocation, [_row(result) for result in results], COLUMNS)
    failed = sum(not result.passed for result in results)
    if failed:
        raise CommandFailed(f"{failed} of {len(results)} cases failed")


def _group(name: str, url: str, secret: str, within: int) -> ProducerGroup:
    return ProducerGroup(
        id=0, name=name, check_url=url, check_timeout_seconds=within, secrets=(secret,)
    )


def _run(invocation: Context, subject: TestedEndpoint, batch: bool) -> Iterator[CaseResult]:
    seconds = subject.group.check_timeout_seconds
    try:
        sent = cases(subject, batch=batch)
    except Exception as error:  # an error of the signing library or of base64
        raise CommandFailed(
            "the secret must be whsec_ followed by base64", ExitCode.USAGE
        ) from error
    with httpx2.Client(timeout=seconds, trust_env=False, follow_redirects=False) as http:
        for number, case in enumerate(sent, 1):
            invocation.say(f"{number}/{len(sent)} {case.name}")
            yield _play(http, subject.group.check_url, case, seconds)


def _play(http: httpx2.Client, url: str, case: ConformanceCase, seconds: float) -> CaseResult:
    began = monotonic()
    try:
        answer = _answer(http, url, case)
    except httpx2.TimeoutException:
        return _result(case, began, f"no answer within {seconds} s")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise CommandFailed(
            f"the endpoint cannot be reached: {type(error).__name__}", ExitCode.UNREACHABLE
        ) from None
    late = monotonic() - began > seconds
    return _result(case, began, f"answered after {seconds} s" if late else case.judge(answer))


def _answer(http: httpx2.Client, url: str, case: ConformanceCase) -> HttpAnswer:
    response = http.post(url, content=case.request.body, headers=case.request.headers)
    body = response.content
    return HttpAnswer(
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding=response.headers.get("content-encoding", ""),
        body=body if len(body) <= BATCH_ANSWER_BYTES else None,
    )


def _result(case: ConformanceCase, began: float, why: str | None) -> CaseResult:
    milliseconds = round((monotonic() - began) * 1000)
    return CaseResult(case=case.name, passed=why is None, milliseconds=milliseconds, why=why or "")


def _row(result: CaseResult) -> dict[str, object]:
    return {
        "case": result.case,
        "passed": result.passed,
        "milliseconds": result.milliseconds,
        "why": result.why,
    }
