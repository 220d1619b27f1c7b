"""`outbox reconcile run` and `rerun`: their options, passed on to the program that audits."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.service.programs import become_reconcile

RunId = Annotated[
    str, typer.Argument(metavar="RUN_ID", help="As `outbox reconcile list` shows it.")
]
ReportDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder for reports and Spark's log.",
        show_default="OUTBOX_RECONCILE_REPORT_DIR",
    ),
]
Most = Annotated[
    str | None,
    typer.Option(
        "--max",
        metavar="NAME=COUNT,…",
        help="Exit 0 with at most so many findings per kind or class, such as missing=0,LOST=2.",
    ),
]


class FailOn(StrEnum):
    """From which severity on findings fail a run."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Comparison(StrEnum):
    """How a sample is compared."""

    XXH64 = "xxh64"
    SHA256 = "sha256"


FailsFrom = Annotated[
    FailOn | None, typer.Option(help="Exit 7 from this severity up.", show_default="low")
]


def run(
    context: typer.Context,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Read everything, not only what is new.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="In a first run: judge what was published since then; `earliest`: everything.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TIME",
            help="Judge what was published up to then, such as 2026-12-31T12:00:00Z.",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Show only findings of this topic; all are read."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Repeat every 15m (or s, h, d) in one Spark session."
        ),
    ] = None,
    accept_topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="Judge this topic again; it was deleted and created anew."
        ),
    ] = None,
    digest: Annotated[
        Comparison | None,
        typer.Option(help="Compare a sample by SHA-256 too.", show_default="xxh64"),
    ] = None,
    show_keys: Annotated[
        bool, typer.Option("--show-keys", help="Show keys in reports, not their hashes.")
    ] = False,
    report: ReportDir = None,
    fail_on: FailsFrom = None,
    most: Most = None,
) -> None:
    """Audit both stores up to one consistent cut; the exit code follows the verdict.

    Exit codes: 0 clean or tolerated, 7 findings, 8 inconclusive: not everything could be read.
    """
    become_reconcile(context, "run", *passed_on(context.params))


def rerun(
    context: typer.Context,
    run_id: RunId,
    *,
    report: ReportDir = None,
    fail_on: FailsFrom = None,
    most: Most = None,
) -> None:
    """Check the open findings of a run again; this takes as long as the next run.

    It stores their new status, but no new run. Exit codes: as those of `outbox reconcile run`.
    """
    become_reconcile(context, "rerun", run_id, *passed_on(context.params))


def passed_on(given: dict[str, Any]) -> Iterator[str]:
    """Yield the options that were given, as the program takes them."""
    names = {"since": "from", "until": "to", "most": "max"}
    for name, value in given.items():
        flag = "--" + names.get(name, name).replace("_", "-")
        if name == "run_id" or value in (None, False):
            continue
        if value is True:
            yield flag
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            yield f"{flag}={each}"
