"""Global flags may stand anywhere on the line, as people type them."""

import sys
from collections.abc import Iterator, Sequence

WITH_VALUE = ("-o", "--output", "--url", "--timeout")
ALONE = ("--quiet", "--no-color", "--yes", "--version")


def hoisted(arguments: Sequence[str]) -> list[str]:
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
    """Tell whether the hoisted flags ask for JSON, or nobody is there to read a table."""
    if not sys.stdout.isatty() and not any(flag in ("-o", "--output") for flag in flags):
        return True
    return any(flag in ("json", "jsonl", "--output=json", "--output=jsonl") for flag in flags)
