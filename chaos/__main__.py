"""`outbox-chaos`, and the group `outbox chaos`: break the whole service and judge the result."""

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.program import call_app, run_process, run_program

NAME = "outbox-chaos"
DEFAULT_ROOT = Path(".outbox-chaos")
Say = Callable[[str], None]
KafkaRelease = Annotated[
    str,
    typer.Option(
        metavar="RELEASE",
        help="A release of Kafka that `make kafka` has fetched.",
        show_default="the usual one",
    ),
]
Pace = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0.01,
        max=1.0,
        help="Share of the profile's random faults; less for a slow machine.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Seed of the faults and the load.")]
Seconds = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=5.0, help="Time of the faults.", show_default="profile's"),
]
FolderOfRuns = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Folder of the runs.", show_default="a new folder"),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folder of a run.")
]


def main() -> None:
    """Run the command with this process's arguments and exit."""
    run_process(lambda words: run_program(NAME, _call, words))


def _call(words: Sequence[str]) -> int:
    return call_app(NAME, make_app(), words)


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(
        no_args_is_help=True, help="Break the service on purpose and judge the result."
    )
    for name, (command, options) in COMMANDS.items():
        app.command(name, epilog=f"Example: {NAME} {name} {options}")(command)
    return app


def run(
    *,
    profile: Annotated[
        str, typer.Option(help="Name of the profile: which faults, and how many.")
    ] = "smoke",
    seed: Seed = 1,
    seconds: Seconds = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="Folder of the run.", show_default="a new folder"
        ),
    ] = None,
    slices: Annotated[
        int,
        typer.Option(
            metavar="COUNT",
            min=1,
            help="Number of runs with derived seeds; their verdicts are added up.",
        ),
    ] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue with the missing slices.")
    ] = False,
    spark: Annotated[
        bool | None,
        typer.Option(
            "--spark/--no-spark",
            help="Audit the stores with Spark at the end.",
            show_default="profile's",
        ),
    ] = None,
    kafka: KafkaRelease = "",
    pace: Pace = 1.0,
) -> None:
    """Run a profile and judge it: exit 0 passed, 7 a violation, 1 nothing is proved."""
    from chaos.run.command import RunOptions, run_profile

    options = RunOptions(
        profile=profile,
        seed=seed,
        seconds=seconds,
        root=folder or _new_folder(profile, seed),
        slices=slices,
        resume=resume,
        spark=spark,
        kafka=kafka,
        pace=pace,
    )
    with _progress() as say, _terminated_as_interrupted():
        _exit(run_profile(options, say))


def check(folder: Folder) -> None:
    """Judge a recorded run again, without a server."""
    from chaos.run.command import check_again

    _exit(check_again(folder))


def controls(
    seed: Seed = 1,
    folder: FolderOfRuns = None,
) -> None:
    """Run relays that break one rule each: exit 0 if all were caught, 1 if one was not."""
    from chaos.run.control_suite import run_controls

    root = (folder or _new_folder("controls", seed)).resolve()
    with _progress() as say, _terminated_as_interrupted():
        results = run_controls(root, seed, say)
    for result in results:
        print(f"{'caught' if result.caught else 'NOT CAUGHT':<12}{result.name:<32}{result.how}")
    _exit(0 if all(result.caught for result in results) else 1)


def evidence(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the runs; a second call continues.")
    ],
    *,
    profile: Annotated[str, typer.Option(help="Name of the profile.")],
    seed: Seed = 1,
    seconds: Seconds = None,
    slices: Annotated[
        int, typer.Option(metavar="COUNT", min=0, help="Number of runs.", show_default="profile's")
    ] = 0,
    pace: Pace = 1.0,
    to: Annotated[
        Path,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="Folder of the page and the JSON."
        ),
    ] = Path("docs/evidence"),
) -> None:
    """Run the slices of a profile and write their sum: only runs that all pass are evidence."""
    from chaos.run.command import RunOptions, record_evidence

    options = RunOptions(
        profile=profile,
        seed=seed,
        seconds=seconds,
        root=folder,
        slices=slices,
        resume=True,
        spark=None,
        pace=pace,
    )
    with _progress() as say, _terminated_as_interrupted():
        _exit(record_evidence(options, to, say))


def matrix(
    *,
    profile: Annotated[str, typer.Option(help="Name of the profile.")] = "releases",
    seed: Seed = 1,
    seconds: Seconds = None,
    kafka: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELEASE", help="A release; repeat for several.", show_default="all fetched"
        ),
    ] = None,
    folder: FolderOfRuns = None,
    pace: Pace = 1.0,
    record: Annotated[
        bool, typer.Option("--record", help="Write docs/evidence and the table in docs/chaos.md.")
    ] = False,
) -> None:
    """Run one profile on several releases of Kafka: exit 7 if one of them violates."""
    from chaos.run.command import RunOptions, run_on_each

    root = folder or _new_folder(f"matrix-{profile}", seed)
    options = RunOptions(
        profile=profile,
        seed=seed,
        seconds=seconds,
        root=root,
        slices=1,
        resume=False,
        spark=False,
        pace=pace,
    )
    with _progress() as say, _terminated_as_interrupted():
        _exit(run_on_each(options, kafka or [], say, record_them=record))


COMMANDS: Final[Mapping[str, tuple[Callable[..., None], str]]] = {
    "run": (run, "--profile smoke --seed 7"),
    "check": (check, ".outbox-chaos/smoke-7-1"),
    "controls": (controls, "--seed 7"),
    "matrix": (matrix, "--kafka 4.0.0 --seed 7"),
    "evidence": (evidence, ".outbox-chaos/evidence --profile smoke"),
}
"""Each command with the options of the example in its help."""


def _exit(code: int) -> None:
    if code != ExitCode.OK:
        raise typer.Exit(code)


def _new_folder(profile: str, seed: int) -> Path:
    for number in range(1, 10_000):
        folder = DEFAULT_ROOT / f"{profile}-{seed}-{number}"
        if not folder.exists():
            return folder
    raise CommandFailed(f"{DEFAULT_ROOT} has too many runs", ExitCode.CONFLICT)


@contextmanager
def _progress() -> Iterator[Say]:
    """Yield a function that shows a line: in place on a terminal, else one line after another."""
    if not sys.stderr.isatty():
        yield lambda line: typer.echo(line, err=True)
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:
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
