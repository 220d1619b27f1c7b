"""Recognises a login of PostgreSQL that may not run a command."""

from typing import Final

INSUFFICIENT_PRIVILEGE: Final = "42501"
"""PostgreSQL's code."""
NEXT_STEP: Final = (
    "this login of PostgreSQL may not run the command;"
    " docs/operate.md, Where to run it, names the one that may"
)


def lacking_right(error: BaseException | None) -> str | None:
    """Return what PostgreSQL refuses, as the error or a cause says; None for another error."""
    while error is not None:
        if getattr(error, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            return str(error).strip().splitlines()[0]
        error = error.__cause__ or error.__context__
    return None
