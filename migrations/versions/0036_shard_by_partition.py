"""New installations assign shards by the hash of Kafka's partitioner; older ones keep theirs.

Runs before the new code, and beside programs of the version before.

Revision ID: 0036
Revises: 0035
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Add the column, and the same choice of a shard in SQL."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
