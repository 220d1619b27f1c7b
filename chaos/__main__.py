"""Entry of `outbox-chaos`: one line for an error, and its exit code."""

import sys

from chaos.app import make_app
from cli.__main__ import exit_code_of, line_of
from cli.exit_codes import ExitCode


def main() -> None:
    """Run the command with this process's arguments and exit."""
    try:
        make_app()(prog_name="outbox-chaos")
    except Exception as error:
        print(line_of(error), file=sys.stderr)
        sys.exit(exit_code_of(error))
    sys.exit(ExitCode.OK)


if __name__ == "__main__":
    main()
