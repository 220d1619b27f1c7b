"""SQL mode, copies of default leaves and ended sessions, in a database that others use too.

Runs before the new code. Programs of the version before call the replaced functions, too.

Revision ID: 0034
Revises: 0033
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Replace the functions, and create one."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
