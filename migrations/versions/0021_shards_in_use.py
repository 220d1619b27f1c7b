"""The number of relay shards that new messages use: a new installation has fewer than sixteen.

Runs before the new code, and beside programs of the version before.

Revision ID: 0021
Revises: 0020
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the number, and let SQL mode keep to it."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
