"""The checker: asks producers about undecided half messages and publishes the committed ones."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from typing import Final

from checker.wiring import chosen_tasks, open_daemon
from outbox.errors import ConfigurationError
from outbox.failpoints import arm
from outbox.settings.catalogue import Settings
from outbox.settings.environment import (
    failpoints,
    load_settings,
    process_environment,
    traces_are_sent,
)
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.events import configure_logging, log_style, log_uncaught_errors
from outbox.telemetry.redaction import redaction
from outbox.telemetry.tracing import open_tracing

OK: Final = 0
USAGE: Final = 2
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checker until SIGTERM (exit 0) or Ctrl-C (130); a wrong setting exits 2."""
    only = _parser().parse_args(arguments).only
    try:
        chosen, settings = chosen_tasks(only), load_settings()
        arm(failpoints())
        configure_logging(settings.log_level, log_style(), secret_texts(settings))
        log_uncaught_errors()
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        return asyncio.run(_run(settings, chosen))
    except ConfigurationError as error:
        print(redaction()(f"outbox-checker: {error}"), file=sys.stderr)  # noqa: T201
        return USAGE


async def _run(settings: Settings, chosen: frozenset[str]) -> int:
    loop, stop, received = asyncio.get_running_loop(), asyncio.Event(), set[int]()

    def end(number: int) -> None:
        received.add(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    spans = open_tracing("outbox-checker", on=traces_are_sent(process_environment()))
    async with open_daemon(settings, chosen, spans) as daemon:
        await daemon.run(stop)
    return INTERRUPTED if signal.SIGINT in received else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="outbox-checker",
        description=__doc__,
        epilog="Example: outbox-checker --only check,sweep",
    )
    parser.add_argument(
        "--only",
        metavar="TASKS",
        help="some of relay,check,sweep,retire; without it, all of them run",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
