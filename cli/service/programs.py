"""Our own programs: where they are, and the commands that become one of them."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cli.context import Output, context_of
from cli.exit_codes import CommandFailed
from cli.stores.database import settings_or_dev
from outbox.settings.environment import load_settings, process_environment


def script(name: str) -> str:
    """Return the path of an installed console script, e.g. `outbox-api`; raises CommandFailed."""
    path = Path(sys.executable).with_name(name)
    if not path.is_file():
        raise CommandFailed(f"{name} is not installed beside {sys.executable}: run `make setup`")
    return str(path)


def api(
    bind: Annotated[str | None, typer.Option(help="HOST:PORT to listen on.")] = None,
) -> None:
    """Serve the HTTP API."""
    _become("outbox-api", [], {"OUTBOX_HTTP_BIND": bind} if bind else {})


def checker(
    only: Annotated[
        str | None, typer.Option(help="Some of relay,check,sweep,retire; all without it.")
    ] = None,
) -> None:
    """Check, publish, sweep and retire."""
    _become("outbox-checker", [], {"OUTBOX_CHECKER_ONLY": only} if only else {})


def reconcile(context: typer.Context, command: str) -> NoReturn:
    """Become the program that compares PostgreSQL with Kafka in Spark."""
    invocation = context_of(context)
    output = "table" if invocation.output is Output.TABLE else "json"
    _become("outbox-reconcile", [command, *context.args, "--output", output], _addresses())


def reconciled(*arguments: str) -> tuple[int, str]:
    """Run that program to its end; return its exit code and what it printed, as JSON.

    Its progress and its errors go to our stderr. Raises CommandFailed where it is not installed.
    """
    command = [script("outbox-reconcile"), *arguments, "--output", "json"]
    environment = {**process_environment(), **_addresses()}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def _addresses() -> dict[str, str]:
    """Return where a running `outbox dev` keeps its data, if the settings name nothing."""
    settings = settings_or_dev()
    if load_settings().database_url is not None or settings.database_url is None:
        return {}
    return {
        "OUTBOX_DATABASE_URL": settings.required_database_url(),
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": settings.required_bootstrap_servers(),
    }


def _become(name: str, arguments: Sequence[str], settings: Mapping[str, str]) -> NoReturn:
    """Replace this process, so that signals and the exit code are the program's own."""
    path = script(name)
    os.execve(path, [path, *arguments], {**process_environment(), **settings})
