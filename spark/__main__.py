"""`outbox-reconcile run`: audits the two stores, reports, and exits by the verdict."""

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
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.events import configure_logging, log_uncaught_errors
from outbox.telemetry.redaction import redaction
from spark.audit.audit import Audit
from spark.audit.audit_loop import AuditLoop, seconds_of
from spark.findings.finding_class import Severity
from spark.findings.verdict import exit_code, limits, parse_tolerance
from spark.jvm.spark_errors import ERROR, INTERRUPTED, SparkFailure, exit_code_of, one_line_failures
from spark.report.report import Report
from spark.report.run_summary import summary
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from spark.wiring import failure_log, open_run

REPORT_DIR: Final = "reconcile_report_dir"
"""The setting that `--report` overrides."""
REPORT_SAMPLES: Final = 50
"""Listed findings of each cause in a report."""


class OneLineParser(argparse.ArgumentParser):
    """A parser that says on one line what is wrong; the parsers of its commands do so too."""

    def error(self, message: str) -> NoReturn:
        """Exit 2."""
        self.exit(2, f"outbox-reconcile: {message} (see `{self.prog} --help`)\n")


class Terminated(KeyboardInterrupt):
    """SIGTERM came during the run. Py4J and others take any other exception for a failure."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one audit.

    Exit codes: 0 clean · 1 error · 2 usage or configuration · 5 another run is under way or
    finished first · 6 unreachable · 7 findings · 8 inconclusive · 130 interrupted.
    """
    redact = redaction()
    try:
        flags = _parser().parse_args(arguments)
        signal.signal(signal.SIGTERM, _terminated)
        settings = load_settings(overrides={REPORT_DIR: flags.report} if flags.report else None)
        redact = redaction(secret_texts(settings))
        configure_logging("warning", "console", secret_texts(settings))
        log_uncaught_errors()
        return _run(flags, settings)
    except (OutboxError, SparkFailure) as error:
        print(redact(f"outbox-reconcile: {error}"), file=sys.stderr)  # noqa: T201
        return exit_code_of(error)
    except Terminated:
        print("outbox-reconcile: terminated before there was a verdict", file=sys.stderr)  # noqa: T201
        return ERROR
    except KeyboardInterrupt:
        print("outbox-reconcile: interrupted", file=sys.stderr)  # noqa: T201
        return INTERRUPTED


def _run(flags: argparse.Namespace, settings: Settings) -> int:
    tolerance = parse_tolerance(flags.fail_on, flags.max)
    resident = flags.every is not None

    def run() -> int:
        report = _run_and_print(flags, settings, context, options)
        return exit_code(report.graded, tolerance)

    with open_run(settings, sys.stderr, resident=resident) as (context, options):
        if not resident:
            return run()
        return AuditLoop(
            every_seconds=flags.every,
            clock=context.clock,
            stopped=_stopped_within,
            note=context.progress.note,
        ).loop(partial(_run_locked, context, run))


def _run_locked(context: RunContext, run: Callable[[], int]) -> int:
    """Hold the run lock for one run: other audits may run between two runs of an audit loop."""
    with context.run_store.run_lock():
        return run()


def _run_and_print(
    flags: argparse.Namespace, settings: Settings, context: RunContext, options: Options
) -> Report:
    """Run once and print the outcome; an audit loop prints one line of JSON per run."""
    with one_line_failures(failure_log(settings)):
        run_options = replace(
            options,
            accept_topics=frozenset(flags.accept_topic),
            full=flags.full,
            show_keys=flags.show_keys,
        )
        report = Audit(context, run_options).run()
        shown = store_run(report, context.run_store, REPORT_SAMPLES)
    context.progress.timings = {}
    indent = 2 if flags.every is None else None
    as_json = flags.output == "json"
    text = json.dumps(shown, indent=indent) + "\n" if as_json else summary(report)
    sys.stdout.write(text)
    sys.stdout.flush()
    return report


def _stopped_within(seconds: float) -> bool:
    """Wait between two runs; a signal during the wait ends the loop normally."""
    try:
        return Event().wait(seconds)
    except KeyboardInterrupt:
        return True


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="outbox-reconcile", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="audit everything up to one consistent cut",
        epilog="Example: outbox reconcile run --report reports --fail-on high",
    )
    run.add_argument("--full", action="store_true", help="read everything, not only what is new")
    run.add_argument(
        "--every",
        type=_argument_type(seconds_of),
        metavar="DURATION",
        help="repeat every 15m (or s, h, d) in one process, one line of JSON per run",
    )
    run.add_argument(
        "--accept-topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="miss nothing that is older than this topic; it was deleted and created anew",
    )
    run.add_argument(
        "--show-keys",
        action="store_true",
        help="show keys in reports, not their hashes",
    )
    _add_common_flags(run)
    return parser


def _argument_type(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Show the parser's own message for a wrong value; argparse would name the function."""

    def reader(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return reader


def _add_common_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument("--report", metavar="DIR", help="folder for reports and Spark's log")
    command.add_argument(
        "--fail-on",
        choices=[each.name.lower() for each in Severity],
        default="low",
        help="exit 7 from this severity up (low)",
    )
    command.add_argument(
        "--max",
        type=_argument_type(limits),
        default={},
        metavar="NAME=COUNT,…",
        help="exit 0 with at most so many findings per kind or class, such as missing=0,LOST=2",
    )
    command.add_argument(
        "-o",
        "--output",
        choices=["table", "json"],
        default="table" if sys.stdout.isatty() else "json",
    )


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    """End without a verdict; exit 0 would mean that everything is clean."""
    raise Terminated


if __name__ == "__main__":
    sys.exit(main())
