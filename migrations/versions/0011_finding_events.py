"""Each change of a finding is kept: what it was found as, refined to, closed or accepted.

Runs before the new code; the old code leaves the table empty and goes on.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table of events, and let the role append to it and forget."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
