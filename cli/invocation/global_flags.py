"""Accepts global flags anywhere on the command line."""

import sys
from collections.abc import Iterator, Sequence

WITH_VALUE = ("-o", "--output", "--url", "--timeout")
ALONE = ("--quiet", "--no-color", "--yes", "--version")


def hoist_global_flags(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global flags first; what follows `--` stays."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags: list[str] = []
    rest = list(_split(iter(arguments[:end]), flags))
    return [*flags, *rest, *arguments[end:]]


def _split(arguments: Iterator[str], flags: list[str]) -> Iterator[str]:
    for argument in arguments:
        if argument in ALONE or (argument.partition("=")[0] in WITH_VALUE[1:] and "=" in argument):
            flags.append(argument)
        elif argument in WITH_VALUE:
            flags.append(argument)
            flags.extend(value for value in [next(arguments, None)] if value is not None)
        else:
            yield argument


def wants_json(flags: Sequence[str]) -> bool:
    """Return whether errors are printed as JSON: on request, or without a terminal."""
    if not sys.stdout.isatty() and not any(flag in ("-o", "--output") for flag in flags):
        return True
    return any(flag in ("json", "jsonl", "--output=json", "--output=jsonl") for flag in flags)
