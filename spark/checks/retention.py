"""Reports what retention removed before it was judged: no run is clean until that is accepted.

Messages are counted by the partition that the relay recorded for them, or by topic where no place
is recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.manifest import START, Kind, Position
from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from spark.compare.evidence import Suspect
from spark.compare.expiry import was_judged
from spark.compare.facts import Judgement, Unverifiable, unverifiable_reason
from spark.cut.cut_plan import ShardCut
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Span

EXPIRED: Final = Cause.UNVERIFIABLE_EXPIRED


@dataclass(slots=True)
class ExpiredMessages:
    """The judged messages of one run whose records may have expired with the log."""

    half_ids: list[HalfId] = field(default_factory=list)
    """All messages that can no longer be verified, for any reason."""
    counts: Counter[Partition] = field(default_factory=Counter)
    """Those of each partition that no run has judged."""
    spans: dict[Partition, Span] = field(default_factory=dict)
    """Their first and their last commit."""

    def note(self, suspects: Iterable[Suspect], judgement: Judgement) -> None:
        """Add the suspects that the log can no longer settle."""
        for suspect in suspects:
            if unverifiable_reason(suspect, judgement) in (None, Unverifiable.UNREAD):
                continue
            self.half_ids.append(suspect.half_id)
            partition, at = recorded_partition(suspect), suspect.committed_at
            gap = partition.topic not in judgement.expired_topics and _is_gap(suspect, judgement)
            if gap and at is not None:
                first, last = self.spans.get(partition, (at, at))
                self.spans[partition] = min(first, at), max(last, at)
                self.counts[partition] += 1

    def findings(self, judgement: Judgement) -> Iterator[Finding]:
        """Yield one finding per partition, or per topic whose messages have no recorded place."""
        for partition, (first, last) in sorted(self.spans.items()):
            evidence = {
                "messages": self.counts[partition],
                "log_start": judgement.starts.get(partition),
                "first_committed_at": first.isoformat(),
                "last_committed_at": last.isoformat(),
            }
            which = f":{EXPIRED}:{last.isoformat()}"
            yield Finding.about_partition(EXPIRED, partition, which, evidence)


def recorded_partition(suspect: Suspect) -> Partition:
    """Return the partition that the relay recorded for a message, without one its whole topic."""
    topic = suspect.known.half.message.topic if suspect.known else ""
    number = suspect.place.partition if suspect.place else WHOLE_TOPIC
    return Partition(topic, number)


def retired_ends(listed: DataFrame, kept_from: int) -> dict[int, Position]:
    """Return per shard the end of its last batch with messages below a transaction id."""
    if not kept_from:
        return {}
    retired = listed.where(f"intact AND kind = {Kind.BATCH:d} AND entries > 0").where(
        F.col("to_xid") < kept_from
    )
    rows = retired.groupBy("shard").agg(F.expr("max(struct(to_xid, to_n))")).collect()
    return {shard: Position(*end) for shard, end in rows}


def retired_findings(
    before: LogState, retired: Mapping[int, Position], shards: Iterable[ShardCut], kept_from: int
) -> Iterator[Finding]:
    """Yield a finding for each shard of which batches were retired before a run had read them.

    ``retired`` is the end of a shard's last batch below transaction id ``kept_from``; from there on
    the commit log is kept. The manifests of retired batches may have expired too. A first run has
    no such finding.
    """
    for each in shards if kept_from else ():
        read, shard = before.positions.get(each.shard), each.shard
        listed_from = min(each.listed_from, Position(kept_from, 0))
        end = max(listed_from, retired.get(shard, START))
        if read is not None and end > read:
            yield Finding(
                cause=EXPIRED,
                subject=f"shard:{shard}:{EXPIRED}:{end.xid}.{end.n}",
                shard=shard,
                evidence={
                    "read_up_to": list(read),
                    "retired_up_to": list(end),
                    "kept_from_xid": kept_from,
                },
            )


def _is_gap(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether a message has expired before a run judged it; one that was missing was judged."""
    reason = unverifiable_reason(suspect, judgement)
    if reason is Unverifiable.RETIRED:
        return suspect.half_id not in judgement.earlier.missing
    return reason is Unverifiable.EXPIRED and not was_judged(suspect, judgement.earlier.previous)
