"""Republish: what the reconciliation found lost may be ordered out again, many at once.

Runs before the new code; the old code knows nothing of the action and goes on.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Let a bulk action republish."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
