"""The truth of every transaction: one row in its client's SQLite file; the first writer wins.

The client writes the decision of its local transaction. For a transaction that has had no row for
too long, the check endpoint writes ROLLBACK, and a late client is then refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

TABLE: Final = "CREATE TABLE IF NOT EXISTS decided (tx TEXT PRIMARY KEY, decision TEXT NOT NULL)"
BUSY_SECONDS: Final = 20.0
ASKED_AT_ONCE: Final = 500


class Truth:
    """The file of one client; several processes may use it."""

    def __init__(self, path: Path) -> None:
        """Open the file; it survives SIGKILL, not a power cut."""
        self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute(TABLE)

    def decide(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Decide transactions in one local transaction; return the truth of each."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("INSERT OR IGNORE INTO decided VALUES (?, ?)", wanted.items())
            decided = self.known(list(wanted))
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return decided

    def known(self, transactions: Sequence[str]) -> dict[str, str]:
        """Return the truths that are decided."""
        found: dict[str, str] = {}
        for first in range(0, len(transactions), ASKED_AT_ONCE):
            some = transactions[first : first + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            statement = f"SELECT tx, decision FROM decided WHERE tx IN ({marks})"
            found.update(self._connection.execute(statement, some))
        return found
