"""What is open is read in its order, so that a list or a batch reads a bounded part of it.

Runs before the new code; programs of the version before do not need it.

Revision ID: 0037
Revises: 0036
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Create the indexes."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
