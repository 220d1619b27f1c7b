"""Findings may be accepted until a moment, and repairs paced.

Runs before the new code; the old code leaves the new columns empty and goes on.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the moment, the action and the rate."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
