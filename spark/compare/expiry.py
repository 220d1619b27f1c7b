"""Whether retention explains a missing record.

It explains only a record that was published and can have expired between two cuts:

- What no manifest lists as published has not expired.
- What was published before the last cut and was missing then has not expired since.
- What was published after the last cut can have expired only where the log now begins after the
  end of that cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from outbox.messages.message_id import HalfId, shard_in
from outbox.reconciliation.log import Partition
from spark.compare.evidence import Suspect
from spark.cut.checkpoint import Previous

PUBLISHED: Final = frozenset("PS")
Place = tuple[int, int]
"""The batch and the index of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRuns:
    """What earlier runs have read and missed; empty before the first run."""

    ends: Mapping[Partition, int] = field(default_factory=dict)
    """The end of each partition at the last cut."""
    previous: Previous | None = None
    missing: frozenset[HalfId] = frozenset()
    """Messages with an open finding of the kind missing."""


def earlier_runs(
    previous: Previous | None, missing: Iterable[HalfId], recreated: Collection[str]
) -> EarlierRuns:
    """Return what earlier runs have read; of the ``recreated`` topics nothing."""
    if previous is None:
        return EarlierRuns()
    return EarlierRuns(
        ends={p: end for p, end in previous.ends.items() if p.topic not in recreated},
        previous=previous,
        missing=frozenset(missing),
    )


def may_have_expired(
    suspect: Suspect, starts: Mapping[Partition, int], earlier: EarlierRuns, *, unlisted: bool
) -> bool:
    """Whether the record of a message without one may have expired before any run could read it.

    ``starts`` is where each log begins. ``unlisted``: the shard publishes without manifests too.
    """
    if suspect.known is None or not is_published(suspect, unlisted=unlisted):
        return False
    topic = suspect.known.half.message.topic
    since = _is_since_last_cut(suspect, topic, earlier.previous)
    if suspect.half_id in earlier.missing and not since:
        return False
    trimmed = {
        partition.number: start
        for partition, start in starts.items()
        if partition.topic == topic and start > (earlier.ends.get(partition, 0) if since else 0)
    }
    if suspect.place is not None:
        return suspect.place.offset < trimmed.get(suspect.place.partition, 0)
    return bool(trimmed)


def was_judged(suspect: Suspect, previous: Previous | None) -> bool:
    """Whether an earlier run has judged a message: found its record, or called it missing."""
    if previous is None or suspect.known is None or suspect.position is None:
        return False
    cut = previous.shards.get(shard_in(suspect.half_id))
    topic = suspect.known.half.message.topic
    return (
        cut is not None
        and suspect.position > cut.baseline
        and not _is_since_last_cut(suspect, topic, previous)
    )


def is_published(suspect: Suspect, *, unlisted: bool) -> bool:
    """Whether its record was published; without a manifest only its hold shows that it was not."""
    statuses = {listing["status"] for listing in suspect.listed}
    if statuses & PUBLISHED:
        return True
    return unlisted and (suspect.hold.released if suspect.hold else not statuses)


def _is_since_last_cut(suspect: Suspect, topic: str, previous: Previous | None) -> bool:
    """Whether a message was published after the last cut at which its whole topic was read."""
    if previous is None:
        return False
    shard, place = shard_in(suspect.half_id), newest_place(suspect)
    cut, unread = previous.shards.get(shard), previous.unread.get(topic)
    if place is None:
        return unread is not None or cut is None or (suspect.position or (0, 0)) > cut.position
    read = unread.get(shard, 0) if unread is not None else cut.batch_no if cut is not None else 0
    return place[0] > read


def newest_place(suspect: Suspect) -> Place | None:
    """Return the newest batch that published a message, and its index there."""
    return max(
        ((each["batch_no"], each["index"]) for each in suspect.listed if each["status"] == "P"),
        default=None,
    )
