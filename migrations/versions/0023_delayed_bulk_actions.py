"""Bulk actions that begin later, and that can be cancelled.

Runs before the new code, and beside programs of the version before, which begin a delayed action
at once.

Revision ID: 0023
Revises: 0021
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0023"
down_revision = "0021"


def upgrade() -> None:
    """Add the times of beginning and cancelling."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
