"""Actions on many messages at once, and which parked messages were copied to the parked topic.

Runs before the new code; the old code goes on with it.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table and the column."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().exec_driver_sql(script)
