"""The check queue keeps what is open alone; a flush sees deleted groups; parkings are kept.

Runs before the new code. The old code goes on: it leaves passed rows, which the new code removes.

Revision ID: 0017
Revises: 0014
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = "0014"


def upgrade() -> None:
    """Drop the passed rows of the queue, index it by age, and add the function of a flush."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
