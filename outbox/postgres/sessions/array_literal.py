"""Arrays in PostgreSQL's text form: the cheapest way to send many values in one parameter.

A statement gives the type, as in ``%(half_ids)s::int8[]``.
"""

from __future__ import annotations

from collections.abc import Iterable


def number_array(numbers: Iterable[int | None]) -> str:
    """Return an array of numbers, some of which may be null."""
    return "{" + ",".join(["NULL" if n is None else str(n) for n in numbers]) + "}"


def text_array(texts: Iterable[str | None]) -> str:
    """Return an array of texts, some of which may be null."""
    return "{" + ",".join(["NULL" if text is None else _quoted(text) for text in texts]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{text}"'
