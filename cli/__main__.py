"""Entry of `outbox` and of `outbox-reconcile`; little is imported before Ctrl-C is handled."""

import sys
from collections.abc import Sequence

from cli.invocation.interrupts import end_at_interrupts, raise_interrupts

NAME = "outbox"


def main() -> None:
    """Run the command with this process's arguments and exit."""
    end_at_interrupts()
    from cli.program import run_process

    run_process(run)


def reconcile() -> None:
    """Run the audit with this process's arguments and exit."""
    end_at_interrupts()
    from spark.__main__ import main as audit

    raise_interrupts()
    sys.exit(audit())


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    from cli.invocation.global_flags import hoist_global_flags
    from cli.program import run_program

    arguments = hoist_global_flags(arguments)
    return run_program(NAME, _print_version if "--version" in arguments else _call, arguments)


def _print_version(_arguments: Sequence[str]) -> int:
    from outbox.telemetry.version import installed_version

    print(installed_version())
    return 0


def _call(arguments: Sequence[str]) -> int:
    from cli.app import make_app
    from cli.program import call_app

    return call_app(NAME, make_app(), arguments)


if __name__ == "__main__":
    main()
