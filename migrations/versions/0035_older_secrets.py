"""Every replaced check secret signs until its own overlap ends, not only the last one.

Runs before the new code, and beside programs of the version before, which sign with two secrets.

Revision ID: 0035
Revises: 0034
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Add the secrets before the previous one, and their times."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
