"""What the reconciliation reads and what it leaves behind.

Runs before the new code. The views are the promise to Spark, so the tables stay free to change. The
role ``outbox_reconcile`` reads the views and writes only the reconciliation's own tables; where the
migrating user may not create roles, it is left to the operator.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the views, the tables of runs and findings, and the role."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().exec_driver_sql(script)
