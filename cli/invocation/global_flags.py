"""Accepts global flags anywhere on the command line."""

import sys
from collections.abc import Iterator, Sequence

WITH_VALUE = ("-o", "--output", "--url", "--timeout")
ALONE = ("--quiet", "--no-color", "--yes", "--version")


def hoist_global_flags(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global flags first; what follows `--` stays."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags: list[str] = []
    words = list(_split(iter(arguments[:end]), flags))
    return [*flags, *words, *arguments[end:]]


def _split(arguments: Iterator[str], flags: list[str]) -> Iterator[str]:
    for argument in arguments:
        if argument in ALONE or _has_value(argument):
            flags.append(argument)
        elif argument in WITH_VALUE:
            flags.append(argument)
            flags.extend(value for value in [next(arguments, None)] if value is not None)
        else:
            yield argument


def _has_value(argument: str) -> bool:
    """Return whether a flag and its value are one word: `--output=json`, `-ojson`."""
    name, sign, _ = argument.partition("=")
    is_short = argument.startswith("-o") and argument[2:] in ("table", "json", "jsonl")
    return is_short or (sign == "=" and name in WITH_VALUE[1:])


def wants_json(flags: Sequence[str]) -> bool:
    """Return whether errors are printed as JSON: on request, or without a terminal."""
    forms = {"table": False, "json": True, "jsonl": True}
    asked = (flag.removeprefix("--output=").removeprefix("-o") for flag in flags)
    return next((forms[each] for each in asked if each in forms), not sys.stdout.isatty())
