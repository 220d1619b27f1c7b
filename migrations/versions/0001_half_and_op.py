"""The half message, its op and everything that follows from them.

Runs before the new code. Halves, ops and the commit log are append-only range partitions with equal
bounds: a leaf covers 2^20 transaction ids, is written once and leaves by TRUNCATE and DROP. The
tables refuse what the state machine refuses: one op a half, a policy that only rolls back, a
recovery that only commits.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the schema's tables, functions and first leaves."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
