"""What a run judges, as frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """What was read and staged, with the cut of each shard in its columns."""

    manifests: DataFrame
    listings: DataFrame
    segments: DataFrame
    """Segments of the commits that no run has judged."""
    batches: DataFrame
    """Batches of the relay with their ranks in the commit log."""
    commits: DataFrame
    records: DataFrame
    size: int = 0
    """Number of records read."""
    standings: Mapping[str, int] = field(default_factory=dict)
    """Number of commits that no run has judged, by their standing."""
    stage_uri: str = ""
    """Where the later steps of the run stage their rows."""
