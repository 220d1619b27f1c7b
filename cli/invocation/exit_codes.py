"""The exit codes of the command, and the error that carries one."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of `outbox`; scripts rely on them."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    CONFLICT = 5
    UNREACHABLE = 6
    DISCREPANCIES = 7
    INCONCLUSIVE = 8
    INTERRUPTED = 130


class CommandFailed(Exception):
    """The command fails: one line for stderr and an exit code."""

    def __init__(self, line: str, exit_code: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(line)
        self.exit_code = exit_code
