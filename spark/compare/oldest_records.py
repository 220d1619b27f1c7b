"""The oldest record of each shard in a partition: what is newer there has not expired.

A shard publishes its batches one after the other, so in each partition its records are in the order
of batch and index.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import SHARDS, shard_in
from spark.compare.evidence import Suspect
from spark.compare.expiry import Place, newest_place
from spark.compare.facts import Judgement, Unverifiable, unverifiable_reason


@dataclass(slots=True)
class OldestRecords:
    """The oldest records of the topics that were asked for; each topic is read once."""

    records: DataFrame
    by_topic: dict[str, dict[tuple[int, int], Place]] = field(default_factory=dict)
    """By topic, then by shard and partition."""

    def with_outlived(
        self, suspects: Sequence[Suspect], judgement: Judgement
    ) -> tuple[Suspect, ...]:
        """Name the partitions from which the record of a suspect has not expired.

        Only for the suspects that nothing else shows to be missing.
        """
        asked = {s.half_id: t for s in suspects if (t := _doubtful_topic(s, judgement))}
        self._read({*asked.values()} - self.by_topic.keys())
        return tuple(
            replace(each, outlived=self._outlived(each, asked[each.half_id]))
            if each.half_id in asked
            else each
            for each in suspects
        )

    def _outlived(self, suspect: Suspect, topic: str) -> frozenset[int]:
        place, shard = newest_place(suspect), shard_in(suspect.half_id)
        return frozenset(
            number
            for (of_shard, number), oldest in self.by_topic[topic].items()
            if place is not None and of_shard == shard and oldest < place
        )

    def _read(self, topics: Collection[str]) -> None:
        if not topics:
            return
        own = F.col("shard") % SHARDS == F.col("half_id").bitwiseAND(SHARDS - 1)
        rows = (
            self.records.where(F.col("topic").isin(*topics) & F.col("batch_no").isNotNull() & own)
            .groupBy("topic", "partition", "shard")
            .agg(F.min(F.struct("batch_no", "index")).alias("oldest"))
            .collect()
        )
        self.by_topic |= {topic: {} for topic in topics}
        for row in rows:
            batch_no, index = row["oldest"]
            self.by_topic[row["topic"]][row["shard"], row["partition"]] = (batch_no, index)


def _doubtful_topic(suspect: Suspect, judgement: Judgement) -> str | None:
    """Return the topic of a suspect without a recorded place that may have expired."""
    if suspect.known is None or suspect.place is not None:
        return None
    expired = unverifiable_reason(suspect, judgement) is Unverifiable.EXPIRED
    return suspect.known.half.message.topic if expired else None
