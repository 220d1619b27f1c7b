"""Commits that wait for a synchronous standby: has PostgreSQL given the wait up?

A cancelled wait is no error to PostgreSQL. The commit stands on the primary, a warning says that
the standby may lack it, and the statement ends as if all were well; a failover would then lose what
was answered. So such a commit counts as unknown, like one whose connection broke.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import psycopg

from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load("outbox.postgres.messages.half_store")
WAITS_HERE: Final = "syncrep.c"
"""PostgreSQL's source file of the wait; the warning's text is translated, its SQLSTATE common."""


class CommitUnconfirmed(psycopg.OperationalError):
    """The commit stands on the primary; whether the synchronous standby has it is unknown."""


class SyncReplication:
    """Hears on each connection whether a wait for the standby was given up."""

    def __init__(self) -> None:
        self._heard: WeakKeyDictionary[AsyncConnection, list[str]] = WeakKeyDictionary()

    async def listen(self, connection: AsyncConnection) -> None:
        """Begin to listen; once a connection."""
        warnings = self._heard[connection] = []

        def note(notice: Diagnostic) -> None:
            if notice.source_file == WAITS_HERE:
                warnings.append(notice.message_primary or "")

        connection.add_notice_handler(note)

    @contextmanager
    def confirming(self, connection: AsyncConnection) -> Iterator[None]:
        """Raise CommitUnconfirmed after the block if a commit inside was not waited for."""
        warnings = self._heard[connection]
        warnings.clear()
        yield
        if warnings:
            raise CommitUnconfirmed(warnings[0])


async def confirm_what_was_read(connection: AsyncConnection) -> None:
    """Wait until a synchronous standby, if there is one, has all that this session has read.

    A commit becomes visible when its wait is given up, also by a crash: who answers from what is
    already there would acknowledge what the standby lacks. One commit, only where there is one.
    """
    await connection.execute(SQL["confirm_what_was_read"])
