"""The previous run, as the next run reads it from the store."""

from __future__ import annotations

from datetime import UTC, datetime

from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import CarriedRow
from spark.cut.checkpoint import Previous


def previous(
    *carried: CarriedRow,
    topics: tuple[str, ...] = (),
) -> Previous:
    """Return a run that has read one partition of each topic and left this open."""
    return Previous(
        run_id="before",
        cut_at=datetime(2026, 1, 1, tzinfo=UTC),
        horizon=0,
        ends={Partition(topic, 0): 0 for topic in topics},
        manifest_ends={},
        marks={},
        shards={},
        carried=carried,
    )
