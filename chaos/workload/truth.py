"""The truth of every transaction: one row in its client's SQLite file, whoever writes it first.

The client writes what its local transaction decided. The check endpoint, asked about one that has
no row for too long, writes ROLLBACK in its place, so that a late client finds itself refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

TABLE: Final = "CREATE TABLE IF NOT EXISTS decided (tx TEXT PRIMARY KEY, decision TEXT NOT NULL)"
BUSY_SECONDS: Final = 20.0
ASKED_AT_ONCE: Final = 500


class Truth:
    """One client's file; several processes may use it."""

    def __init__(self, path: Path) -> None:
        """Open the file; it survives SIGKILL, not a power cut."""
        self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute(TABLE)

    def decide(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Decide transactions in one local transaction; return what each one's truth now is."""
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
        """Return the truths that there are."""
        found: dict[str, str] = {}
        for first in range(0, len(transactions), ASKED_AT_ONCE):
            some = transactions[first : first + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            statement = f"SELECT tx, decision FROM decided WHERE tx IN ({marks})"
            found.update(self._connection.execute(statement, some))
        return found

    def all(self) -> Iterator[tuple[str, str]]:
        """Yield every transaction that has been decided."""
        yield from self._connection.execute("SELECT tx, decision FROM decided")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
