"""`outbox-chaos`, or `outbox chaos`: break the whole service on purpose and judge what is left."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from cli.exit_codes import CommandFailed, ExitCode

DEFAULT_ROOT = Path(".outbox-chaos")
Say = Callable[[str], None]
Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of a run.")]


def make_app() -> typer.Typer:
    """Put the command group together."""
    app = typer.Typer(no_args_is_help=True, help="Break the service on purpose and judge the rest.")
    app.command("run")(run)
    app.command("check")(check)
    app.command("controls")(controls)
    return app


def run(
    *,
    profile: Annotated[str, typer.Option(help="Which faults, and how many.")] = "smoke",
    seed: Annotated[int, typer.Option(help="Faults and work follow from it.")] = 1,
    seconds: Annotated[
        float | None, typer.Option(min=5.0, help="Length of the faults.", show_default="profile's")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="Everything is kept here.", show_default="a new folder"),
    ] = None,
    slices: Annotated[
        int, typer.Option(min=1, help="So many runs with seeds of their own, added up.")
    ] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the slices that are missing.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Have Spark reconcile the stores at the end.")
    ] = False,
) -> None:
    """Run a profile and judge it: exit 0 passed, 7 something was violated, 1 nothing is proved."""
    from chaos.command import Asked, run_asked

    asked = Asked(
        profile=profile,
        seed=seed,
        seconds=seconds,
        root=folder or _new_folder(profile, seed),
        slices=slices,
        resume=resume,
        spark=spark,
    )
    with _progress() as say, _terminated_as_interrupted():
        _exit(run_asked(asked, say))


def check(folder: Folder) -> None:
    """Judge a recorded run again; no server is needed."""
    from chaos.command import check_again

    _exit(check_again(folder))


def controls(
    seed: Annotated[int, typer.Option(help="Faults and work follow from it.")] = 1,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Kept here.", show_default="a new folder")
    ] = None,
) -> None:
    """Run relays that are wrong in one rule each: exit 0 if all were caught, 1 if one was not."""
    from chaos.controls.suite import run_controls

    root = (folder or _new_folder("controls", seed)).resolve()
    with _progress() as say, _terminated_as_interrupted():
        results = run_controls(root, seed, say)
    for result in results:
        print(f"{'caught' if result.caught else 'NOT CAUGHT':<12}{result.name:<32}{result.how}")
    _exit(0 if all(result.caught for result in results) else 1)


def _exit(code: int) -> None:
    if code != ExitCode.OK:
        raise typer.Exit(code)


def _new_folder(profile: str, seed: int) -> Path:
    for number in range(1, 10_000):
        folder = DEFAULT_ROOT / f"{profile}-{seed}-{number}"
        if not folder.exists():
            return folder
    raise CommandFailed(f"{DEFAULT_ROOT} is full of runs", ExitCode.CONFLICT)


@contextmanager
def _progress() -> Iterator[Say]:
    """Yield what shows a line: in place on a terminal, one below the other elsewhere."""
    if not sys.stderr.isatty():
        yield lambda line: typer.echo(line, err=True)
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:
        yield status.update


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Within the block SIGTERM ends a run as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
