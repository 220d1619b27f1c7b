"""Commits that wait for a synchronous standby, and how we learn that PostgreSQL gave a wait up.

PostgreSQL does not treat a cancelled wait as an error. The commit is durable on the primary, a
warning reports that the standby may lack it, and the statement ends as a success. A failover would
then lose what was acknowledged. So such a commit counts as unknown, like one whose connection
broke.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
WAIT_SOURCE_FILE: Final = "syncrep.c"
"""PostgreSQL's source file of the wait: the warning's text is translated, its SQLSTATE is common
to other warnings."""


class CommitUnconfirmed(psycopg.OperationalError):
    """The commit is on the primary; whether the synchronous standby has it is unknown."""


def note_given_up_waits(connection: AsyncConnection) -> None:
    """Begin to note in ``unconfirmed`` the waits that are given up; called once per connection."""
    warnings = connection.unconfirmed = list[str]()

    def note(notice: Diagnostic) -> None:
        if notice.source_file == WAIT_SOURCE_FILE:
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(note)


async def confirm_what_was_read(connection: AsyncConnection) -> None:
    """Wait until a synchronous standby, if there is one, has all that this session has read.

    A commit becomes visible when its wait is given up, also by a crash. An answer from stored data
    alone would then acknowledge what the standby lacks. Costs one commit, only with such a standby.
    """
    await connection.execute(SQL["confirm_what_was_read"])
