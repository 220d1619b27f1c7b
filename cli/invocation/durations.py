"""Parses durations such as 90d, and moments given as a date or as a duration from now."""

import re
from datetime import UTC, datetime, timedelta

from cli.invocation.exit_codes import CommandFailed, ExitCode
from outbox.clock import SystemClock

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str, option: str) -> timedelta:
    """Parse a duration such as 90d or 12h. Raises CommandFailed naming the option."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if found is None:
        raise CommandFailed(f"{option} needs a number followed by s, m, h or d", ExitCode.USAGE)
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def moment(text: str, option: str) -> datetime:
    """Parse a moment: a duration from now, or an ISO 8601 date with or without a time.

    Without a time zone it is UTC. Raises CommandFailed naming the option.
    """
    if re.fullmatch(r"[0-9]+[a-z]", text):
        return SystemClock().now() + duration(text, option)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        line = f"{option} needs a value such as 30d, 2026-12-31 or 2026-12-31T08:00Z"
        raise CommandFailed(line, ExitCode.USAGE) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
