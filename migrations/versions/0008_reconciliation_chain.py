"""Where the next reconciliation starts: the last finished cut, and what it left open.

Runs before the new code; the old code knows nothing of it and goes on reading everything.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the tables of the cut and of what is carried, and let the role write them."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
