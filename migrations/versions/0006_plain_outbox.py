"""Plain outbox mode: messages that the producer's own transaction publishes, by an SQL function.

Runs before the new code. The mode is off until ``outbox.allow_publish`` is called for the first
role; until then the watermark is what it was, and the old code goes on with it.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the tables and functions, and teach the watermark about foreign transactions."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
