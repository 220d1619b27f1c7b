"""The statement of `What a restore has lost` in docs/runbooks.md."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from tests.fixtures_paths import PROJECT

RUNBOOKS = (PROJECT / "docs" / "runbooks.md").read_text("utf-8")


def named_orphans(connection: psycopg.Connection[Any]) -> dict[str, tuple[str | None, str | None]]:
    """Run it; return the group and the transaction id of each message."""
    [statement] = re.findall(r"```sql\n(\s*SELECT outbox.message_id.*?)```", RUNBOOKS, re.DOTALL)
    rows = connection.execute(statement.encode()).fetchall()
    return {str(message_id): (group, name) for message_id, group, name, _ in rows}
