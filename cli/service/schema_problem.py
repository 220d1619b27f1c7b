"""Recognises a database without our tables, or with those of an older version."""

from typing import Final

LACKING: Final = {"3F000": "schema", "42P01": "table", "42703": "column", "42883": "function"}
"""PostgreSQL's codes for what does not exist."""


def lacking_in_schema(error: BaseException) -> str | None:
    """Return what PostgreSQL misses, as the error or its cause says; None if it is another one."""
    cause = error.__cause__ or error.__context__ or error
    if getattr(cause, "sqlstate", None) not in LACKING:
        return None
    return str(cause).strip().splitlines()[0]
