"""Keys that descend from a key of some groups share its limits; the API deletes no progress.

Runs before the new code, and beside programs of the version before: keys that these create descend
from none.

Revision ID: 0029
Revises: 0028
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Add the column and the trigger."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
