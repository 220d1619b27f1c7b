"""Every table can be replicated logically: what an audit carries over has no key.

Runs before the new code, and beside programs of the version before.

Revision ID: 0020
Revises: 0019
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Name the whole row as the identity of the table without a key."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
