"""A leaf is made without a wait that holds an xid, and takes its rows out of the default leaf.

Runs before the new code; the old code calls the same functions, and tries again when a reader is
in their way.

Revision ID: 0013
Revises: 0011
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0011"


def upgrade() -> None:
    """Replace the functions, and create the list of removed leaves."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
