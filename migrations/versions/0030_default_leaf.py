"""Rows without a leaf get one by a copy: the default leaves are replaced, however large they are.

Runs before the new code. Programs of the version before call the same function, and so do the same.

Revision ID: 0030
Revises: 0029
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Add the steps of the copy, and find tables by name that a copy replaces."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
