"""The audit's role may read where the checks stand, but no payload.

Runs before the new code; the old code does not look there.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Grant the rights."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
