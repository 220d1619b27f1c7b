"""Lengths of time as people type them, and moments that may be given as one from now."""

import re
from datetime import UTC, datetime, timedelta

from cli.exit_codes import CommandFailed, ExitCode
from outbox.clock import SystemClock

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str, option: str) -> timedelta:
    """Read a length of time such as 90d or 12h. Raises CommandFailed naming the option."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if found is None:
        raise CommandFailed(f"{option} wants a number and s, m, h or d", ExitCode.USAGE)
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def moment(text: str, option: str) -> datetime:
    """Read a moment: a length of time from now, or a date, with a time or without one (ISO 8601).

    Without a time zone it is UTC. Raises CommandFailed naming the option.
    """
    if re.fullmatch(r"[0-9]+[a-z]", text):
        return SystemClock().now() + duration(text, option)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        line = f"{option} wants such as 30d, 2026-12-31 or 2026-12-31T08:00Z"
        raise CommandFailed(line, ExitCode.USAGE) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
