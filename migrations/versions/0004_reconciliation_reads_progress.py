"""The reconciliation's role reads the relays' rows: in the lane at_least_once no manifest tells.

Runs before the new code.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Grant the right."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().exec_driver_sql(script)
