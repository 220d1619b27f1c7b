"""The breaker of each producer group, shared by all checkers.

Runs before the new code. A row is a breaker that is not closed, so there are as many rows as there
are endpoints in trouble, and none is written while all goes well.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().exec_driver_sql(script)
