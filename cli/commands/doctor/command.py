"""`outbox doctor`: all checks, one table, one exit code."""

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter

import typer

from cli.commands.doctor.endpoint_checks import endpoint_checks
from cli.invocation.context import Context, Output, context_of
from cli.invocation.exit_codes import ExitCode
from cli.invocation.output import print_rows
from cli.invocation.settings import database_url, settings_or_dev
from outbox.operators.health_check import HealthCheck, HealthStatus
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.redaction import Redaction, redaction


def doctor(context: typer.Context) -> None:
    """Check PostgreSQL, Kafka, the checker and the check endpoints; exits 1 on a failure."""
    from outbox.kafka.health.kafka_checks import kafka_checks
    from outbox.postgres.operators.postgres_checks import postgres_checks, stored_topics

    database_url()  # without one there is nothing to look at
    settings = settings_or_dev()
    found = [
        *postgres_checks(settings),
        *kafka_checks(settings, stored_topics(settings)),
        *endpoint_checks(context),
    ]
    found.sort(key=lambda each: list(HealthStatus).index(each.verdict), reverse=True)
    _print(context_of(context), found, redaction(secret_texts(settings)))
    if any(each.verdict is HealthStatus.FAILED for each in found):
        raise typer.Exit(ExitCode.ERROR)


def _print(invocation: Context, found: Sequence[HealthCheck], redact: Redaction) -> None:
    """Print what is wrong, and a count of what is good; for programs every check."""
    text = with_command if invocation.output is Output.TABLE else attrgetter("detail")
    good = [each for each in found if each.verdict is HealthStatus.OK]
    shown = found[: -len(good)] if invocation.output is Output.TABLE and good else found
    rows = [
        {name: value for name, value in asdict(each).items() if value is not None}
        | {"detail": redact(text(each))}
        for each in shown
    ]
    print_rows(invocation, rows, ("check", "verdict", "detail"), none="nothing is wrong")
    if shown is not found:
        print(f"{len(good)} ok")


def with_command(check: HealthCheck) -> str:
    """Return the detail with the command to run next, if it does not name it already."""
    command = check.command
    if command is None or command in check.detail:
        return check.detail
    where = "with Kafka's tools" if command.startswith("kafka-") else "next"
    return f"{check.detail}; {where}: {command}"
