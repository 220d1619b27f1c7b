"""What a run judges, as frames."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """What was read, staged, with the cut of each shard beside it.

    ``carried`` tells the rows that an earlier run has read and left open.
    """

    manifests: DataFrame
    listings: DataFrame
    segments: DataFrame
    """Of the commits that no run has judged."""
    batches: DataFrame
    """Of the relay, laid over the commit log."""
    commits: DataFrame
    records: DataFrame
    size: int = 0
    """How many records were read."""

    @property
    def new_commits(self) -> DataFrame:
        """The commits that no run has judged."""
        return self.commits.where("NOT carried")

    @property
    def new_records(self) -> DataFrame:
        """The records that no run has read."""
        return self.records.where("NOT carried")
