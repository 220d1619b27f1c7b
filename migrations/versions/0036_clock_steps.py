"""Steps of PostgreSQL's clock are noted, so that they make nothing old too early or too late.

Runs before the new code. Programs of the version before note no step and read none.

Revision ID: 0036
Revises: 0035
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Create the table, and the functions that write and read it."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
