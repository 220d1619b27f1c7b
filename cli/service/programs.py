"""The service's programs: their paths, and commands that run or become one of them."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cli.invocation.context import Output, context_of
from cli.invocation.exit_codes import CommandFailed
from cli.invocation.settings import settings_or_dev
from outbox.settings.environment import load_settings, process_environment
from outbox.settings.service_manager import compose_command

FOR_OTHER_STORES = (
    "OUTBOX_KAFKA_CONFIG_FILE",
    "OUTBOX_RECONCILE_REPLICA_URL",
    "OUTBOX_RECONCILE_REPLICA_URL_FILE",
)
"""Settings that hold secrets or addresses of stores other than those of `outbox dev`."""


def script(name: str) -> str:
    """Return the path of an installed console script, e.g. `outbox-api`; raises CommandFailed."""
    path = Path(sys.executable).with_name(name)
    if not path.is_file():
        raise CommandFailed(f"{name} is not installed beside {sys.executable}: run `make setup`")
    return str(path)


def api(
    bind: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address to listen on.", show_default="OUTBOX_HTTP_BIND"
        ),
    ] = None,
) -> None:
    """Serve the HTTP API and the console."""
    _become("outbox-api", [f"--bind={bind}"] if bind else [])


def checker(
    only: Annotated[
        str | None,
        typer.Option(
            metavar="TASKS",
            help="Some of relay,check,sweep,retire.",
            show_default="all",
        ),
    ] = None,
) -> None:
    """Run the checker: it asks producers about undecided messages, and publishes committed ones.

    Its tasks: relay publishes what is committed, check asks producers, sweep queues what is due
    for a check, retire drops expired data.
    """
    _become("outbox-checker", [f"--only={only}"] if only else [])


def become_reconcile(context: typer.Context, *arguments: str) -> NoReturn:
    """Replace this process by the program that compares PostgreSQL with Kafka in Spark."""
    invocation = context_of(context)
    output = "table" if invocation.output is Output.TABLE else "json"
    path = _reconcile_script()
    # The audit lets an interrupt through once it can end in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execve(path, [path, *arguments, "--output", output], _environment())


def _reconcile_script() -> str:
    """Return the path of the audit. Raises CommandFailed where Spark is not installed."""
    if find_spec("pyspark") is None:
        way = compose_command("run --rm reconcile run") or "use the image outbox-spark"
        raise CommandFailed(
            f"Spark is not installed here, so no audit can run: {way}, or install "
            "requirements/spark.txt"
        )
    return script("outbox-reconcile")


def _environment() -> dict[str, str]:
    """Return this process' environment; without a database URL, for a running `outbox dev`."""
    settings, environment = settings_or_dev(), process_environment()
    if load_settings().database_url is not None or settings.database_url is None:
        return environment
    for name in FOR_OTHER_STORES:
        environment.pop(name, None)
    return environment | {
        "OUTBOX_DATABASE_URL": settings.required_database_url(),
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": settings.required_bootstrap_servers(),
        "OUTBOX_KAFKA_CONFIG": "{}",  # also instead of one in the configuration file
    }


def _become(name: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process, so that signals reach the program and its exit code is returned."""
    path = script(name)
    os.execve(path, [path, *arguments], process_environment())
