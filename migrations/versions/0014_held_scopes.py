"""Held records are found by their scope; topics keep what the relay last saw of them in Kafka.

Runs before the new code; the old code ignores the indexes, the view and the columns.

Revision ID: 0014
Revises: 0013
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the view and the indexes of open held records, and the columns of topics."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
