"""Commits that a caller waits for.

Runs before the new code, and beside programs of the version before, which mark none.

Revision ID: 0028
Revises: 0027
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add the mark."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
