"""`outbox doctor`: all checks, one table, one exit code."""

from dataclasses import asdict

import typer

from cli.commands.doctor.endpoint_checks import endpoint_checks
from cli.invocation.context import context_of
from cli.invocation.exit_codes import ExitCode
from cli.invocation.output import print_rows
from cli.invocation.settings import settings_or_dev
from outbox.operators.health_check import HealthStatus
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.redaction import redaction


def doctor(context: typer.Context) -> None:
    """Check PostgreSQL, Kafka, the checker and the check endpoints; exits 1 on a failure."""
    from outbox.kafka.health.kafka_checks import kafka_checks
    from outbox.postgres.operators.postgres_checks import postgres_checks, stored_topics

    settings = settings_or_dev()
    found = [
        *postgres_checks(settings),
        *kafka_checks(settings, stored_topics(settings)),
        *endpoint_checks(context),
    ]
    redact = redaction(secret_texts(settings))
    rows = [asdict(each) | {"detail": redact(each.detail)} for each in found]
    print_rows(context_of(context), rows, ("check", "verdict", "detail"))
    if any(each.verdict is HealthStatus.FAILED for each in found):
        raise typer.Exit(ExitCode.ERROR)
