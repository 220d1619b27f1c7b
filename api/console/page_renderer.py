"""Renders the pages: templates that escape everything, and the headers that confine a browser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
        " object-src 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86_400
CELL: Final = re.compile(r"<td(?=[ >])(?![^>]*colspan)")
"""The begin of a cell of one column."""


def page_templates(**shared: Any) -> Environment:
    """Return the templates of the pages; ``shared`` are the values that every page uses."""
    templates = Environment(
        loader=PackageLoader("api.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(shared)
    templates.filters.update(
        age=age_text,
        labelled=labelled,
        moment=moment_text,
        number=number_text,
        utc=read_moment,
        words=value_words,
    )
    templates.globals["parts"] = templates.get_template("parts.html").module
    return templates


def age_text(seconds: float) -> str:
    """Return a duration as people read it: ``45 s``, ``12 min``, ``3 h 20 min``, ``4 d 2 h``."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def read_moment(text: str) -> datetime:
    """Return the time of an RFC 3339 text."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moment_text(text: str, timespec: str = "seconds") -> str:
    """Return an RFC 3339 time to the second, or to the millisecond."""
    return read_moment(text).replace(tzinfo=None).isoformat(" ", timespec)


def number_text(number: float) -> str:
    """Return a count with a narrow space between thousands."""
    return f"{int(number):,}".replace(",", "\u202f")


def labelled(row: Markup, names: Sequence[str]) -> Markup:
    """Return a row whose cells name their columns: on a telephone it is a card."""
    left = iter(names)
    return Markup(CELL.sub(lambda cell: f'{cell[0]} data-label="{escape(next(left, ""))}"', row))


def value_words(value: Any) -> str:
    """Return a member of an answer as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value_words(each) for each in value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {value_words(each)}" for name, each in value.items()) or "-"
    return str(value)
