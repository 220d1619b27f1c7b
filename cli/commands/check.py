"""`outbox check`: a conformance kit for a developer's check endpoint."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Annotated, Final

import httpx2
import typer

from cli.check_cases import Case, Subject, cases
from cli.context import Context, context_of
from cli.exit_codes import CommandFailed, ExitCode
from cli.output import print_rows
from outbox.checks.check_round import Outcome
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import SystemClock
from outbox.http_checks.classify import HttpAnswer
from outbox.http_checks.endpoint import BATCH_ANSWER_BYTES

COLUMNS: Final = ("case", "passed", "milliseconds", "why")
DEFAULT_SECONDS: Final = 5


class Expected(StrEnum):
    """What the endpoint has to say of the transaction that `--transaction-id` names."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one case went; ``why`` is empty when it passed."""

    case: str
    passed: bool
    milliseconds: int
    why: str


def make_app() -> typer.Typer:
    """Put the command group together."""
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
    producer_group: Annotated[str, typer.Option(help="The endpoint's group.")],
    batch: Annotated[bool, typer.Option("--batch", help="Ask in the batch form too.")] = False,
    transaction_id: Annotated[
        str | None, typer.Option(help="A transaction that the endpoint knows.")
    ] = None,
    expect: Annotated[Expected, typer.Option(help="What it has to say of it.")] = Expected.COMMIT,
    within: Annotated[
        int, typer.Option(min=1, max=60, help="Seconds that a check may take.")
    ] = DEFAULT_SECONDS,
) -> None:
    """Send good, stale, forged, repeated and batch checks to the endpoint that `--url` names.

    Pass or fail per case, exit 1 on a fail. The messages asked about were never prepared: an
    endpoint with a barrier notes them as fenced.
    """
    invocation = context_of(context)
    if invocation.url is None:
        raise CommandFailed("--url: the check endpoint is missing", ExitCode.USAGE)
    subject = Subject(
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


def _run(invocation: Context, subject: Subject, batch: bool) -> Iterator[Result]:
    seconds = subject.group.check_timeout_seconds
    try:
        sent = cases(subject, batch=batch)
    except Exception as error:  # the signing library's own, or base64's
        raise CommandFailed("the secret is not whsec_ and base64", ExitCode.USAGE) from error
    with httpx2.Client(timeout=seconds, trust_env=False, follow_redirects=False) as http:
        for number, case in enumerate(sent, 1):
            invocation.say(f"{number}/{len(sent)} {case.name}")
            yield _play(http, subject.group.check_url, case, seconds)


def _play(http: httpx2.Client, url: str, case: Case, seconds: float) -> Result:
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


def _answer(http: httpx2.Client, url: str, case: Case) -> HttpAnswer:
    response = http.post(url, content=case.request.body, headers=case.request.headers)
    body = response.content
    return HttpAnswer(
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding=response.headers.get("content-encoding", ""),
        body=body if len(body) <= BATCH_ANSWER_BYTES else None,
    )


def _result(case: Case, began: float, why: str | None) -> Result:
    milliseconds = round((monotonic() - began) * 1000)
    return Result(case=case.name, passed=why is None, milliseconds=milliseconds, why=why or "")


def _row(result: Result) -> dict[str, object]:
    return {
        "case": result.case,
        "passed": result.passed,
        "milliseconds": result.milliseconds,
        "why": result.why,
    }
