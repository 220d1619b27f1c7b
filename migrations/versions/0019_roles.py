"""Roles for the API, the checker and SQL mode: leaves by functions, locks that stop nobody.

Runs before the new code. Programs of the version before go on with the rights of the owner.

Revision ID: 0019
Revises: 0018
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the functions; `grants.sql`, which runs after every migration, creates the roles."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
