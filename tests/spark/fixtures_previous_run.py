"""The run before, as the next one reads it from the store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from outbox.reconciliation.log import Partition
from outbox.reconciliation.stored_run import CarriedRow
from spark.cut.checkpoint import NOWHERE, MisplacedKeys, Previous


def previous(
    *carried: CarriedRow, topics: tuple[str, ...] = (), away: Mapping[str, MisplacedKeys] = NOWHERE
) -> Previous:
    """Return a run that has read one partition of each topic and has left this behind."""
    return Previous(
        run_id="before",
        cut_at=datetime(2026, 1, 1, tzinfo=UTC),
        horizon=0,
        ends={Partition(topic, 0): 0 for topic in topics},
        manifest_ends={},
        marks={},
        shards={},
        carried=carried,
        away=away,
    )
