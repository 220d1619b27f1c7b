"""A relay that reads whatever has a higher id, open transactions or not: the naive cursor.

A flush that took a lower xid and commits later is passed and never published.
"""

from __future__ import annotations

from typing import Final

from checker.__main__ import main as run_checker
from outbox.storage import commit_contents
from outbox.storage.statements import Statements

NAME: Final = "read_commits"
WATERMARK: Final = " AND xid < outbox.watermark()"


def main() -> int:
    """Run the checker with this relay."""
    right = commit_contents.SQL
    texts = {name: right[name] for name in right.names()}
    wrong = texts[NAME].replace(WATERMARK, "")
    if wrong == texts[NAME]:
        raise LookupError(f"{NAME} does not mention the watermark: this control controls nothing")
    texts[NAME] = wrong
    setattr(commit_contents, "SQL", Statements(texts))  # noqa: B010
    return run_checker([])
