"""The format of an exception in the log: traceback and error, never a row's contents.

PostgreSQL adds a DETAIL to some errors that quotes the row with its payload. Only the first line is
logged, which names tables and rules.
"""

from __future__ import annotations

from traceback import format_tb
from types import TracebackType


def exception_format(
    exc_info: tuple[type[BaseException], BaseException, TracebackType | None],
) -> str:
    """Return the traceback of an error and of its causes, the first cause first."""
    parts: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None:
        place = "".join(format_tb(error.__traceback__))
        inner = [
            exception_format((type(each), each, None)) for each in getattr(error, "exceptions", ())
        ]
        parts.append("\n".join([f"{place}{type(error).__name__}: {_words(error)}", *inner]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(reversed(parts))


def _words(error: BaseException) -> str:
    diagnosis = getattr(error, "diag", None)
    if diagnosis is None or not getattr(diagnosis, "message_primary", None):
        return str(error)
    return f"{diagnosis.message_primary} ({diagnosis.sqlstate})"
