"""`outbox check`: conformance tests for a check endpoint."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import asdict
from typing import Annotated, Final

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import Context, context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_rows
from cli.service.check_url_rules import MEANING
from outbox.checks.answer import Outcome
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.ssrf_guard import policy_of
from outbox.clock import SystemClock
from outbox.http_checks.conformance import (
    CaseResult,
    ConformanceCase,
    EndpointSilent,
    SecretInvalid,
    TestedEndpoint,
    planned,
    simulate,
)
from outbox.messages.message import Resolution

COLUMNS: Final = ("case", "passed", "milliseconds", "why")
DEFAULT_SECONDS: Final = 5
ANYWHERE: Final = policy_of(["0.0.0.0/0", "::/0"], [], ["1-65535"])
"""Who runs the command chooses the address."""

FAILURES: Final = {
    "ClientConnectorError": "nothing listens there, or a firewall is in the way",
    "ClientConnectorDNSError": "its host has no address",
    "ClientConnectorSSLError": "no TLS connection is possible",
    "ServerDisconnectedError": "it closed the connection without an answer",
}
"""Why a call failed, by the class of its error."""


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Test a check endpoint.",
        {
            "simulate": simulate_checks,
        },
    )


def simulate_checks(
    context: typer.Context,
    endpoint_url: Annotated[
        str, typer.Argument(metavar="ENDPOINT_URL", help="Where it answers checks.")
    ],
    *,
    secret: Annotated[
        str, typer.Option(envvar="OUTBOX_CHECK_SECRET", help="The group's check secret (whsec_…).")
    ],
    producer_group: Annotated[
        str, typer.Option("--group", "--producer-group", help="Producer group of the endpoint.")
    ],
    batch: Annotated[bool, typer.Option("--batch", help="Send batch checks too.")] = False,
    transaction_id: Annotated[
        str | None, typer.Option(help="A transaction that the endpoint knows.")
    ] = None,
    expect: Annotated[
        Resolution, typer.Option(help="The decision it must return for that transaction.")
    ] = Resolution.COMMIT,
    within: Annotated[
        int, typer.Option(metavar="SECONDS", min=1, max=60, help="Time limit of one check.")
    ] = DEFAULT_SECONDS,
) -> None:
    """Send valid, stale, forged, repeated and batch checks to an endpoint.

    Prints pass or fail per case and exits 1 on a fail. The messages of these checks were never
    prepared: an endpoint with a barrier records them as fenced.
    """
    invocation = context_of(context)
    subject = TestedEndpoint(
        group=ProducerGroup(
            id=0,
            name=producer_group,
            check_url=endpoint_url,
            check_timeout_seconds=within,
            secrets=(secret,),
        ),
        now=SystemClock().now(),
        seed=secrets.randbits(58),
        known=transaction_id,
        expected=Outcome[expect.value],
    )
    try:
        sent = planned(subject, batch=batch)
        results = asyncio.run(_run(invocation, subject, sent))
    except SecretInvalid as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None
    except EndpointSilent as silent:
        raise _unreached(endpoint_url, silent) from None
    print_rows(invocation, [asdict(result) for result in results], COLUMNS)
    failed = sum(not result.passed for result in results)
    if failed:
        raise CommandFailed(f"{failed} of {len(results)} cases failed")


def _unreached(url: str, silent: EndpointSilent) -> CommandFailed:
    """Return the error for an endpoint that could not be called."""
    if silent.outcome is Outcome.BLOCKED:
        return CommandFailed(
            f"ENDPOINT_URL: {MEANING.get(silent.error, silent.error)}", ExitCode.USAGE
        )
    why = FAILURES.get(silent.error, silent.error)
    return CommandFailed(f"{url} cannot be reached: {why}", ExitCode.UNREACHABLE)


async def _run(
    invocation: Context, subject: TestedEndpoint, sent: tuple[ConformanceCase, ...]
) -> list[CaseResult]:
    from outbox.http_checks.endpoint import HttpCheckEndpoint  # slow to import

    results: list[CaseResult] = []
    async for result in simulate(HttpCheckEndpoint(ANYWHERE), subject, sent, SystemClock()):
        results.append(result)
        invocation.say(f"{len(results)}/{len(sent)} {result.case}")
    return results
