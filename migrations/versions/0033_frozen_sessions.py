"""The checker ends sessions of our programs that are frozen in the middle of a statement.

Runs before the new code. Programs of the version before do not call the function.

Revision ID: 0033
Revises: 0032
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Create the function."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
