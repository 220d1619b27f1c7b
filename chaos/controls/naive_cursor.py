"""A relay with a naive cursor: it reads every higher id and ignores open transactions.

A flush with a lower xid that commits later is skipped and never published.
"""

from __future__ import annotations

from typing import Final

from checker.__main__ import main as run_checker
from outbox.postgres.relay import commit_reader
from outbox.postgres.sessions.statements import Statements

NAME: Final = "read_commits"
WATERMARK: Final = " AND xid < outbox.watermark()"


def main() -> int:
    """Run the checker with this relay."""
    right = commit_reader.SQL
    texts = {name: right[name] for name in right.names()}
    wrong = texts[NAME].replace(WATERMARK, "")
    if wrong == texts[NAME]:
        raise LookupError(f"{NAME} does not mention the watermark: this control controls nothing")
    texts[NAME] = wrong
    setattr(commit_reader, "SQL", Statements(texts))  # noqa: B010
    return run_checker([])
