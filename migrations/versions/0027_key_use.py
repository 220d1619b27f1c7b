"""When a key was last used, and when a request with it was last refused.

Runs before the new code, and beside programs of the version before, which note nothing.

Revision ID: 0027
Revises: 0023
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0027"
down_revision = "0023"


def upgrade() -> None:
    """Add the two times."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
