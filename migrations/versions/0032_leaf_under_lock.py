"""A leaf that a transaction may use already is made while nobody reads or writes its tables.

Runs before the new code. Programs of the version before call the same function, and so do the same.

Revision ID: 0032
Revises: 0031
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Replace the function that makes a leaf."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
