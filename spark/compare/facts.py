"""The deciding facts of a suspect, and why a message without a record may not be missing. Pure.

A record with a suspect's half id but other random bits is a stranger: it is no copy of the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from outbox.messages.manifest import START
from outbox.messages.message_id import HalfId, leaf_in, shard_in
from outbox.reconciliation.log import Partition
from outbox.reconciliation.snapshot import RecordHold
from spark.columns.segments import JUDGED
from spark.compare.decision_table import Content, Decision, Facts, Held, Listed
from spark.compare.evidence import Copy, Suspect
from spark.compare.expiry import (
    EarlierRuns,
    is_published,
    may_have_expired,
    newest_place,
    was_judged,
)
from spark.cut.log_state import Baseline


class Unverifiable(Enum):
    """Why a message without a record cannot be called missing."""

    UNREAD = auto()
    """Its topic was not read up to the cut."""
    EXPIRED = auto()
    """It was published, and its record can have expired before any run could read it."""
    COMPACTED = auto()
    """Compaction may have removed it."""
    ACCEPTED = auto()
    """Its topic was recreated since, and the operator accepted that."""
    RETIRED = auto()
    """Its half was retired, so nobody knows its topic any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The facts about the run that are needed to judge a suspect."""

    retired_below: HalfId
    retired_leaves: frozenset[int] = frozenset()
    """Leaves above it that were removed before a lower one."""
    starts: Mapping[Partition, int]
    """Where each partition's log begins: a record with a place below it has expired."""
    ends: Mapping[Partition, int] = field(default_factory=dict)
    """Where the run stops reading: each committed record with a place below it is visible."""
    batches: Mapping[int, int] = field(default_factory=dict)
    """By shard the last batch at the cut: the manifests up to it list all that was published."""
    earlier: EarlierRuns = field(default_factory=EarlierRuns)
    unread_topics: frozenset[str] = frozenset()
    expired_topics: frozenset[str] = frozenset()
    """Topics with a finding about records that expired before they were read."""
    baselines: Mapping[str, Mapping[int, Baseline]] = field(default_factory=dict)
    """By accepted recreated topic, then by shard: what was published by then is not missing."""
    unlisted_shards: frozenset[int] = frozenset()
    """Shards that publish at least once, or did so earlier."""
    listed_from: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By shard where the kept manifests begin: none shows what was published of older messages."""


def is_unverifiable(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether a message without a record cannot be called missing: its record may have expired."""
    return unverifiable_reason(suspect, judgement) is not None


def unverifiable_reason(suspect: Suspect, judgement: Judgement) -> Unverifiable | None:
    """Return why a judged message without a record cannot be called missing; None if it can."""
    visible = suspect.copies + suspect.ahead - len(suspect.strangers)
    if suspect.standing != JUDGED or visible:
        return None
    return _invisible_reason(suspect, judgement)


def facts_of(suspect: Suspect, judgement: Judgement) -> Facts:
    """Reduce a suspect to the facts that decide."""
    return Facts(
        decision=_decision(suspect),
        judged=suspect.standing == JUDGED,
        listed=_listed(suspect.listed),
        unlisted=_is_unlisted(suspect, judgement),
        copies=suspect.copies - sum(not c.ahead for c in suspect.strangers),
        ahead=suspect.ahead - sum(c.ahead for c in suspect.strangers),
        content=_content(suspect),
        held=_held(suspect),
        release_read=_is_release_read(suspect, judgement),
        redriven=_redriven(suspect),
        forgotten=any(
            suspect.is_missing_in_postgres(c) for c in suspect.found if c not in suspect.strangers
        ),
        retired=is_retired(suspect, judgement),
        again=_is_published_again(suspect, judgement.earlier),
        verifiable=_invisible_reason(suspect, judgement) is None,
    )


def _decision(suspect: Suspect) -> Decision:
    """Return the decision in the snapshot; a position in the commit log means COMMIT."""
    if suspect.standing is not None:
        return Decision.COMMIT
    if suspect.known is None:
        return Decision.ABSENT
    return Decision(suspect.known.decision or Decision.NONE)


def _redriven(suspect: Suspect) -> int:
    """Count the records that repairs explain.

    An order to publish a message again is one record in one batch. A second record of an order, or
    of a batch, is not a repair's work.
    """
    hold = suspect.hold
    if hold is None or not hold.repaired:
        return 0
    redriven = [copy for copy in suspect.own if copy.redriven]
    batches = {(copy.shard, copy.batch_no) for copy in redriven}
    orders = {copy.repair for copy in redriven}
    repeated = min(len(batches), len(orders)) < len(redriven)
    if repeated or any(_is_repetition(copy, hold) for copy in redriven):
        return 0
    return len(redriven)


def _is_repetition(copy: Copy, hold: RecordHold) -> bool:
    """Whether the last order was carried out in another batch than this record of it names."""
    if copy.repair != hold.repair or copy.batch_no is None or not hold.released:
        return False
    return hold.release_batch_no not in (None, copy.batch_no)


def _listed(listings: Sequence[Mapping[str, Any]]) -> Listed:
    statuses = {listing["status"] for listing in listings}
    return next((each for each in Listed if each.value in statuses), Listed.NOWHERE)


def _content(suspect: Suspect) -> Content:
    if suspect.comparison is not None:
        return suspect.comparison.content
    first = suspect.first
    return Content.SAME if first is None or first.digest == suspect.digest else Content.VALUE


def _held(suspect: Suspect) -> Held:
    if suspect.hold is None:
        return Held.NEVER
    if suspect.hold.dropped:
        return Held.DROPPED
    return Held.RELEASED if suspect.hold.released else Held.OPEN


def _is_release_read(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether the run has read what is stored as the release: its batch, or without one its place.

    The relay stores a release after Kafka has its manifest, which then lists the message.
    """
    hold, shard = suspect.hold, shard_in(suspect.half_id)
    if hold is not None and shard not in judgement.unlisted_shards:
        batch_no = hold.release_batch_no
        return batch_no is not None and batch_no <= judgement.batches.get(shard, 0)
    if hold is None or hold.released_partition is None or hold.released_offset is None:
        return False
    topic = suspect.known.half.message.topic if suspect.known else ""
    partition = Partition(topic, hold.released_partition)
    start, end = judgement.starts.get(partition, 0), judgement.ends.get(partition, 0)
    return start <= hold.released_offset < end


def _invisible_reason(suspect: Suspect, judgement: Judgement) -> Unverifiable | None:
    """Return why a record may be unreadable; None if it must be readable."""
    topic = suspect.known.half.message.topic if suspect.known else None
    if topic in judgement.unread_topics:
        return Unverifiable.UNREAD
    shard, unlisted = shard_in(suspect.half_id), _is_unlisted(suspect, judgement)
    published = is_published(suspect, unlisted=unlisted)
    forgotten = suspect.known is None and suspect.hold is None and is_retired(suspect, judgement)
    if forgotten and (published or suspect.half_id in judgement.earlier.missing):
        return Unverifiable.RETIRED
    baseline = judgement.baselines.get(topic or "", {}).get(shard)
    if published and baseline is not None and _was_published_by(suspect, baseline):
        return Unverifiable.ACCEPTED
    if published and suspect.superseded:
        return Unverifiable.COMPACTED
    expired = may_have_expired(suspect, judgement.starts, judgement.earlier, unlisted=unlisted)
    return Unverifiable.EXPIRED if expired else None


def _is_unlisted(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether a message need not be in a manifest that Kafka still keeps."""
    shard, position = shard_in(suspect.half_id), suspect.position
    older = position is not None and position <= judgement.listed_from.get(shard, START)
    return older or shard in judgement.unlisted_shards


def is_retired(suspect: Suspect, judgement: Judgement) -> bool:
    """Whether the leaf of a message was removed; an unfinished message outlives its leaf."""
    if suspect.half_id < judgement.retired_below:
        return True
    return leaf_in(suspect.half_id) in judgement.retired_leaves


def _is_published_again(suspect: Suspect, earlier: EarlierRuns) -> bool:
    """Whether a record was written again of a message that an earlier run has not missed."""
    if suspect.half_id in earlier.missing or not any(copy.again for copy in suspect.own):
        return False
    return suspect.known is None or was_judged(suspect, earlier.previous)


def _was_published_by(suspect: Suspect, baseline: Baseline) -> bool:
    """Whether a published message is older than a baseline; a release may come after it."""
    place = newest_place(suspect)
    if place is not None and baseline.batch_no is not None and place[0] > baseline.batch_no:
        return False
    return suspect.position is not None and suspect.position <= baseline.position
