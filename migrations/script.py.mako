"""${message}

Why, and whether it runs before or after the new code:

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from __future__ import annotations

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Apply the change; migrations only ever go forward."""
    ${upgrades if upgrades else "pass"}
