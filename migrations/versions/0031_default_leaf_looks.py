"""A look for rows without a leaf reads only where a leaf is missing, however much is kept.

Runs before or after the new code: both ask the same question.

Revision ID: 0031
Revises: 0030
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Replace the function that looks for rows without a leaf."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
