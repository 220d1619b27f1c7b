"""`outbox dev`: its flags and its output."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.dev.run import run_dev
from cli.dev.stack import DevOptions
from cli.invocation.context import Context, Output, context_of
from cli.invocation.dev_state import DEFAULT_DATA_DIR, NAME, DevState
from cli.invocation.exit_codes import CommandFailed, ExitCode
from outbox.settings.environment import (
    drop_variables,
    load_settings,
    process_environment,
)


def _port(server: str) -> Any:
    """Return the option of a port on 127.0.0.1."""
    text = f"Port of {server} on 127.0.0.1."
    return typer.Option(metavar="PORT", min=0, max=65535, show_default="a free one", help=text)


def dev(
    context: typer.Context,
    *,
    data_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for all data.")
    ] = DEFAULT_DATA_DIR,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data first.")] = False,
    postgres_bin: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Use this folder's PostgreSQL (initdb, postgres)."),
    ] = None,
    api_port: Annotated[int, _port("the API")] = 0,
    postgres_port: Annotated[int, _port("PostgreSQL")] = 0,
    kafka_port: Annotated[int, _port("Kafka")] = 0,
    auth: Annotated[
        Literal["dev-insecure", "keys"],
        typer.Option(help="keys: each call needs an API key; dev.json holds one."),
    ] = "dev-insecure",
) -> None:
    """Run PostgreSQL, Kafka, the API and the checker on this machine, for development."""
    invocation = context_of(context)
    if postgres_bin is not None:
        _refuse_incomplete(postgres_bin)
    load_settings()  # an unknown OUTBOX_ name stops this process, not each child
    drop_variables()
    ports = {"api": api_port, "postgres": postgres_port, "kafka": kafka_port}
    code = run_dev(
        DevOptions(data_dir=data_dir, postgres_bin=postgres_bin, ports=ports, auth=auth),
        process_environment(),
        fresh=fresh,
        say=invocation.say,
        announce=lambda state: _announce(invocation, state, data_dir),
    )
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def _refuse_incomplete(postgres_bin: Path) -> None:
    if not all((postgres_bin / name).is_file() for name in ("initdb", "postgres")):
        line = f"--postgres-bin: {postgres_bin} has no initdb and postgres"
        raise CommandFailed(line, ExitCode.USAGE)


def _announce(invocation: Context, state: DevState, data_dir: Path) -> None:
    """Print the addresses; password and key stay in `dev.json`."""
    if invocation.output is not Output.TABLE:
        hidden = {"database_url", "api_key"}
        shown = {name: value for name, value in asdict(state).items() if name not in hidden}
        print(json.dumps(shown), flush=True)
        return
    for name, value in addresses(state, data_dir).items():
        print(f"  {name:<14}{value}", flush=True)
    invocation.say("Ctrl-C stops everything")


def addresses(state: DevState, data_dir: Path) -> dict[str, str]:
    """Return the addresses for a person, and where the key is, if one is needed."""
    found = {
        "API": state.api_url,
        "documentation": f"{state.api_url}/docs",
        "Kafka": state.kafka_bootstrap_servers,
        "PostgreSQL": state.database_url.partition("@")[2],
    }
    if state.api_key is not None:
        found["API key"] = f"api_key in {data_dir / NAME}"
    return found
