"""Reports what retention removed before it was judged: no run is clean until that is accepted.

Messages are counted by the partition that the relay recorded for them, or by topic where no place
is recorded. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from outbox.messages.manifest import START, Position
from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from spark.compare.evidence import Suspect
from spark.compare.expiry import was_judged
from spark.compare.facts import Judgement, Unverifiable, unverifiable_reason
from spark.cut.cut_plan import ShardCut
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

EXPIRED: Final = Cause.UNVERIFIABLE_EXPIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Messages of one partition without a record, from the first commit to the last."""

    messages: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def with_one(self, committed_at: datetime | None) -> Span:
        """Return the span with one more message."""
        times = [each for each in (self.first, self.last, committed_at) if each is not None]
        return replace(
            self,
            messages=self.messages + 1,
            first=min(times, default=None),
            last=max(times, default=None),
        )


@dataclass(slots=True)
class ExpiredMessages:
    """The judged messages of one run whose records may have expired with the log."""

    spans: dict[Partition, Span] = field(default_factory=dict)
    half_ids: list[HalfId] = field(default_factory=list)
    """All messages that can no longer be verified, for any reason."""

    def note(self, suspects: Iterable[Suspect], judgement: Judgement) -> None:
        """Add the suspects that the log can no longer settle."""
        for suspect in suspects:
            if unverifiable_reason(suspect, judgement) in (None, Unverifiable.UNREAD):
                continue
            self.half_ids.append(suspect.half_id)
            partition = recorded_partition(suspect)
            if partition.topic in judgement.expired_topics:
                continue
            if _is_gap(suspect, judgement):
                span = self.spans.get(partition, Span())
                self.spans[partition] = span.with_one(suspect.committed_at)

    def findings(self, judgement: Judgement) -> tuple[Finding, ...]:
        """Return one finding per partition, or per topic whose messages have no recorded place."""
        return tuple(
            retention_finding(partition, _evidence(span, partition, judgement.starts))
            for partition, span in sorted(self.spans.items())
        )


def has_expired(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether nothing can settle a message any more; a held message can still be released."""
    reason = unverifiable_reason(suspect, judgement)
    if reason is Unverifiable.EXPIRED:
        return True
    return reason not in (None, Unverifiable.UNREAD) and suspect.hold is None


def recorded_partition(suspect: Suspect) -> Partition:
    """Return the partition that the relay recorded for a message, without one its whole topic."""
    topic = suspect.known.half.message.topic if suspect.known else ""
    number = suspect.place.partition if suspect.place else WHOLE_TOPIC
    return Partition(topic, number)


def with_unlisted_ends(
    retired: Mapping[int, Position], shards: Iterable[ShardCut], kept_from: int
) -> dict[int, Position]:
    """Return the ends of what was retired, also of batches whose manifests have expired too."""
    unlisted = {each.shard: min(each.listed_from, Position(kept_from, 0)) for each in shards}
    return {shard: max(end, retired.get(shard, START)) for shard, end in unlisted.items()}


def retired_findings(
    before: LogState, retired: Mapping[int, Position], kept_from: int
) -> tuple[Finding, ...]:
    """Return a finding for each shard of which batches were retired before a run had read them.

    ``retired`` is the end of a shard's last batch below transaction id ``kept_from``; from there on
    the commit log is kept. A first run has no such finding.
    """
    return tuple(
        Finding(
            cause=EXPIRED,
            subject=f"shard:{shard}:{EXPIRED}:{end.xid}.{end.n}",
            shard=shard,
            evidence={
                "read_up_to": list(before.positions[shard]),
                "retired_up_to": list(end),
                "kept_from_xid": kept_from,
            },
        )
        for shard, end in sorted(retired.items())
        if shard in before.positions and end > before.positions[shard]
    )


def retention_finding(partition: Partition, evidence: Mapping[str, Any]) -> Finding:
    """Return the finding of a partition whose log begins after the first offset to read.

    The topic is empty for messages whose halves were retired before a run judged them.
    """
    whole = partition.number == WHOLE_TOPIC
    topic = partition.topic
    place = f"topic:{topic}" if whole else f"partition:{topic}/{partition.number}"
    return Finding(
        cause=EXPIRED,
        subject=f"{place}:{EXPIRED}:{evidence['last_committed_at']}",
        topic=topic or None,
        partition=None if whole else partition.number,
        evidence=evidence,
    )


def _is_gap(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether a message has expired before a run judged it; one that was missing was judged."""
    reason = unverifiable_reason(suspect, judgement)
    if reason is Unverifiable.RETIRED:
        return suspect.half_id not in judgement.earlier.missing
    return reason is Unverifiable.EXPIRED and not was_judged(suspect, judgement.earlier.previous)


def _evidence(span: Span, partition: Partition, starts: Mapping[Partition, int]) -> dict[str, Any]:
    return {
        "messages": span.messages,
        "log_start": starts.get(partition),
        "first_committed_at": span.first.isoformat() if span.first else None,
        "last_committed_at": span.last.isoformat() if span.last else None,
    }
