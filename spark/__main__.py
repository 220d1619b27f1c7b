"""`outbox-reconcile run|rerun`: audits the two stores, reports, and exits by the verdict."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from types import FrameType
from typing import Any, Final, NoReturn

from outbox.errors import OutboxError
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from spark.audit import run_once
from spark.audit_loop import AuditLoop, seconds_of
from spark.compare.sha256_check import Digest
from spark.cut.time_bounds import time_of
from spark.findings.finding_class import Severity
from spark.findings.verdict import exit_code, tolerance_of
from spark.report.report import Report, spaced
from spark.report.store_run import publish_and_tell
from spark.rerun import open_findings, rerun_once
from spark.run_context import Options, RunContext
from spark.spark_errors import INTERRUPTED, SparkFailure, exit_code_of, told_in_one_line
from spark.wiring import open_run, run_store, told_by

SETTING_OF: Final = {
    "report": "reconcile_report_dir",
    "fail_on": "reconcile_fail_on",
    "max": "reconcile_max",
    "show_keys": "reconcile_show_keys",
    "textfile": "reconcile_textfile",
}
"""Flags that stand for a setting and win over it."""


TIMES: Final = (
    ("--from", "since", "judge what was published since then (earliest); for a first run"),
    ("--to", "until", "judge what was published up to then, such as 2026-12-31T12:00:00Z"),
)


class Terminated(OutboxError):
    """SIGTERM came while the run was under way."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one audit.

    Exit codes: 0 clean · 1 error · 2 usage or configuration · 3 no such run · 5 another run is
    under way or was quicker · 6 unreachable · 7 findings · 8 inconclusive · 130 interrupted.
    """
    flags = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        settings = load_settings(overrides=_overrides(flags))
        return _rerun(flags, settings) if flags.command == "rerun" else _run(flags, settings)
    except (OutboxError, SparkFailure) as error:
        print(f"outbox-reconcile: {error}", file=sys.stderr)  # noqa: T201
        return exit_code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(flags: argparse.Namespace, settings: Settings) -> int:
    tolerance = tolerance_of(settings.reconcile_fail_on, settings.reconcile_max)
    resident = flags.every is not None

    def run() -> int:
        report = _run_and_tell(flags, settings, parts, options)
        return exit_code(report.graded, tolerance)

    with open_run(settings, sys.stderr, resident=resident) as (parts, options):
        if not resident:
            return run()
        return AuditLoop(
            every_seconds=flags.every,
            clock=parts.clock,
            stopped=_stopped_within,
            note=parts.progress.note,
        ).loop(partial(_holding, parts, run))


def _holding(parts: RunContext, run: Callable[[], int]) -> int:
    """Hold the chain for one run: between two of a resident job others may come in."""
    with parts.run_store.hold():
        return run()


def _run_and_tell(
    flags: argparse.Namespace, settings: Settings, parts: RunContext, options: Options
) -> Report:
    """Run once and print the outcome; a resident job prints JSON in one line a run."""
    with told_in_one_line(told_by(settings)):
        asked = replace(
            options,
            accept_topics=frozenset(flags.accept_topic),
            digest=Digest(flags.digest),
            full=flags.full,
            since=flags.since,
            until=flags.until,
        )
        report = run_once(parts, asked)
        shown = publish_and_tell(report, parts, settings.reconcile_report_samples, flags.topic)
    parts.progress.timings = {}
    indent = 2 if flags.every is None else None
    as_json = flags.output == "json"
    sys.stdout.write(json.dumps(shown, indent=indent) + "\n" if as_json else _lines(report))
    sys.stdout.flush()
    return report


def _rerun(flags: argparse.Namespace, settings: Settings) -> int:
    """Look again at what an earlier run found; without such a run Spark is not even started."""
    tolerance = tolerance_of(settings.reconcile_fail_on, settings.reconcile_max)
    open_findings(run_store(settings), flags.run_id)
    with open_run(settings, sys.stderr) as (parts, options):
        rerun = rerun_once(parts, options, flags.run_id)
    as_json = flags.output == "json"
    sys.stdout.write(json.dumps(rerun.document(), indent=2) + "\n" if as_json else rerun.lines())
    return rerun.exit_code(tolerance)


def _stopped_within(seconds: float) -> bool:
    """Rest between two runs; a signal that comes then ends the job in good order."""
    try:
        return Event().wait(seconds)
    except (Terminated, KeyboardInterrupt):
        return True


def _lines(report: Report) -> str:
    """Return what a person reads on a terminal; the last three lines are for scripts as well."""
    totals = ", ".join(f"{kind} {spaced(n)}" for kind, n in report.totals.items())
    return (
        f"{report.sentence}\n"
        f"{report.plan.origin.sentence}\n"
        f"in flight {spaced(report.counts.in_flight)}, "
        f"waiting for a producer {spaced(report.counts.prepared)}, "
        f"parked {spaced(report.counts.parked)}\n"
        f"verdict: {report.verdict}\n"
        f"totals: {totals}\n"
        f"report: {report.folder / 'report.html'}\n"
    )


def _overrides(flags: argparse.Namespace) -> dict[str, Any]:
    given = {setting: getattr(flags, flag, None) for flag, setting in SETTING_OF.items()}
    return {setting: value for setting, value in given.items() if value is not None}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="outbox-reconcile", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="audit everything up to one consistent cut")
    run.add_argument("--full", action="store_true", help="read everything, not only what is new")
    for flag, name, what in TIMES:
        run.add_argument(flag, dest=name, type=_worded(time_of), metavar="TIME", help=what)
    run.add_argument(
        "--topic", action="append", default=[], help="show findings of this topic; reads all"
    )
    run.add_argument(
        "--every",
        type=_worded(seconds_of),
        metavar="TIME",
        help="stay, and audit every 15m (or s, h) in one warm session, a line of JSON each",
    )
    run.add_argument(
        "--accept-topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="judge a topic that was deleted and made anew from now on",
    )
    run.add_argument(
        "--digest",
        choices=[each.value for each in Digest],
        default=Digest.XXH64.value,
        help="compare a sample by SHA-256 as well, which no crafted record deceives (xxh64)",
    )
    run.add_argument(
        "--show-keys", action="store_true", default=None, help="keys, not their hashes"
    )
    run.add_argument("--textfile", metavar="FILE", help="metrics for a node exporter")
    rerun = commands.add_parser(
        "rerun", help="look again at one run's open findings and store what they became"
    )
    rerun.add_argument("run_id", metavar="RUN_ID")
    for command in (run, rerun):
        _add_common_flags(command)
    return parser


def _worded(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let the reader of a flag say what is wanted; argparse would name the function."""

    def reader(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return reader


def _add_common_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument("--report", metavar="DIR", help="where reports and Spark's log go")
    command.add_argument(
        "--fail-on",
        choices=[each.name.lower() for each in Severity],
        help="exit 7 from this severity on (low)",
    )
    command.add_argument(
        "--max",
        metavar="NAME=COUNT,…",
        help="exit 0 with at most so many findings of a kind or class",
    )
    command.add_argument(
        "-o",
        "--output",
        choices=["table", "json"],
        default="table" if sys.stdout.isatty() else "json",
    )


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    """End without a verdict: exit 0 would say that everything is clean."""
    raise Terminated("terminated before there was a verdict")


if __name__ == "__main__":
    sys.exit(main())
