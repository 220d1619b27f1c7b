"""The schema: a file a noun in ``baseline/``. The rights of the roles are in ``roles.sql``.

Halves, ops and the commit log are append-only range partitions with equal bounds. The tables refuse
what the state machine refuses: one op a half, a policy that only rolls back, a recovery that only
commits. Until the first release a change edits the baseline. After it, a change is a revision of
its own, which runs before the new code (expand) or after it (contract).

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

BASELINE = Path(__file__).parent.with_name("baseline")
NOUNS = (
    "messages",
    "checks",
    "relay",
    "operators",
    "reconciliation",
    "sql_mode",
    "leaves",
)


def upgrade() -> None:
    """Create the tables, functions and first leaves."""
    session = op.get_bind().connection.driver_connection
    for noun in NOUNS:
        session.execute((BASELINE / f"{noun}.sql").read_text("utf-8"))
