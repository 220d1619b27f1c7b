"""`outbox-chaos`, and the group `outbox chaos`: break the whole service and judge the result."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from chaos.judge.verdict import Verdict
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.program import call_app, run_process, run_program
from outbox.settings.environment import drop_variables

NAME: Final = "outbox-chaos"
ROOT: Final = Path(".outbox-chaos")
EXIT: Final = {"PASS": 0, "VIOLATION": 7, "VOID": 1}
Say = Callable[[str], None]


def main() -> None:
    """Run the command with this process's arguments and exit."""
    drop_variables()
    run_process(lambda words: run_program(NAME, _call, words))


def _call(words: Sequence[str]) -> int:
    return call_app(NAME, make_app(), words)


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(
        no_args_is_help=True, help="Break the service on purpose and judge the result."
    )
    app.command("run", epilog=f"Example: {NAME} run --profile mixed --seed 7")(run)
    app.command("check", epilog=f"Example: {NAME} check {ROOT}/kill-7-1")(check)
    return app


def run(
    *,
    profile: Annotated[str, typer.Option(help="kill, mixed, failover or brokers.")] = "kill",
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the faults and the load.")
    ] = 1,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=5.0, help="Time of the faults.", show_default="profile's"
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="Folder of the run.", show_default="a new folder"
        ),
    ] = None,
    kafka: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="A release of Kafka that `make kafka` has fetched.",
            show_default="the usual one",
        ),
    ] = "",
) -> None:
    """Run a profile and judge it: exit 0 passed, 7 a violation, 1 nothing is proved."""
    from chaos.profiles import PROFILES
    from chaos.run import run_and_judge, shortened

    if profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise CommandFailed(f"unknown profile {profile!r}; known: {known}", ExitCode.USAGE)
    place = (folder or _new_folder(profile, seed)).resolve()
    if place.exists():
        raise CommandFailed(f"{place} exists", ExitCode.CONFLICT)
    with _progress() as say, _terminated_as_interrupted():
        wanted = shortened(PROFILES[profile], seconds)
        _report(place, run_and_judge(place, wanted, seed, say, kafka=kafka))


def check(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folder of a run.")
    ],
) -> None:
    """Judge a recorded run again, without a server."""
    from chaos.judge import FACTS, judge

    if not (folder / FACTS).exists():
        raise CommandFailed(f"{folder} has no {FACTS}", ExitCode.NOT_FOUND)
    verdict = judge(folder)
    verdict.write(folder)
    _report(folder, verdict)


def _report(folder: Path, verdict: Verdict) -> None:
    print(f"{verdict.text()}\n{folder}")
    if EXIT[verdict.verdict]:
        raise typer.Exit(EXIT[verdict.verdict])


def _new_folder(profile: str, seed: int) -> Path:
    for number in range(1, 10_000):
        folder = ROOT / f"{profile}-{seed}-{number}"
        if not folder.exists():
            return folder
    raise CommandFailed(f"{ROOT} has too many runs", ExitCode.CONFLICT)


@contextmanager
def _progress() -> Iterator[Say]:
    """Yield a function that shows a line: in place on a terminal, else one line after another."""
    if not sys.stderr.isatty():
        yield lambda line: typer.echo(line, err=True)
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield status.update


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Within the block SIGTERM interrupts a run as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    main()
