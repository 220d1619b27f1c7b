"""The progress row says which batches consumers see, and manifests list the offsets of their batch.

Stop every checker first: it refuses to run beside an older relay, which cannot read the new
manifests. The API goes on.

Revision ID: 0018
Revises: 0017
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Refuse while a relay holds a shard, then add the columns."""
    script = Path(__file__).with_suffix(".sql").read_text("utf-8")
    op.get_bind().connection.driver_connection.execute(script)
