"""Proves without Spark that a small number of new rows are as they must be. Pure.

Each commit up to the cut is the entry of its manifest and has one record, in its slot and equal to
it; no other record is there, and the order, the partitions and the times are right. Then no class
of finding about these rows is possible. Whatever is otherwise is not judged here: Spark names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from outbox.messages.manifest import START, Kind
from outbox.messages.message_id import SHARDS, split_message_id
from outbox.reconciliation.snapshot import LoggedCommit
from spark.cut.checkpoint import Mark
from spark.even.rows import ListedManifest, PlainRecord, Uneven, is_ahead

Slot = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Even:
    """What a run has read, each message in its place."""

    commits: Sequence[LoggedCommit]
    pairs: Sequence[tuple[LoggedCommit, PlainRecord]]
    """The commits up to the cut, each with its record."""
    in_flight: Sequence[LoggedCommit]
    ahead: Sequence[tuple[LoggedCommit, PlainRecord]]
    """Those commits in flight of which the log has the record already."""


def unread(
    shard: int, listed: Sequence[ListedManifest], mark: Mark | None
) -> Sequence[ListedManifest]:
    """Return the manifests after the known one, which ``mark`` names; without it all of them.

    Raises Uneven unless they continue it, or begin the shard, each in turn.
    """
    first = listed[0].manifest
    begins = (first.kind, first.shard) == (Kind.BATCH, shard)
    begins = begins and (first.batch_no, first.prev_crc, first.after) == (1, 0, START)
    known = mark is not None and listed[0][:2] == mark
    if not (known or (mark is None and begins)):
        raise Uneven(f"the manifests of shard {shard} do not begin where they must")
    for last, each in pairwise(listed):
        before, now = last.manifest, each.manifest
        in_turn = (
            now.kind is Kind.BATCH
            and (now.installation, now.shard) == (before.installation, shard)
            and (now.batch_no, now.prev_crc) == (before.batch_no + 1, last.crc)
            and now.gen >= before.gen
            and before.to == now.after <= now.to
        )
        if not in_turn:
            raise Uneven(f"batch {now.batch_no} of shard {shard} does not follow in turn")
    return listed[1:] if known else listed


def matched(
    listed: Mapping[int, Sequence[ListedManifest]],
    commits: Sequence[LoggedCommit],
    records: Iterable[PlainRecord],
    cuts: Mapping[int, int],
    newest: Mapping[int, int],
) -> Even:
    """Match the commits with their records.

    ``listed`` are the manifests that no run has judged; they list published messages only. By
    shard, ``cuts`` is the last batch to judge, and ``newest`` the last one that can be in the log.
    Raises Uneven.
    """
    if len({each.half_id for each in commits}) < len(commits):
        raise Uneven("a message is in the commit log twice")
    slots, in_flight = _slots(listed, commits)
    waiting = {each.half_id: each for each in in_flight}
    pairs, ahead = (
        list[tuple[LoggedCommit, PlainRecord]](),
        list[tuple[LoggedCommit, PlainRecord]](),
    )
    for each in records:
        commit, name = slots.pop(each.slot, (None, each.message_id))
        found = pairs
        if commit is None and is_ahead(each, cuts, newest):
            commit, found = waiting.pop(each.half_id, None), ahead
        if commit is None or not _is_record_of(each, commit, name):
            raise Uneven(f"a record of message {each.message_id} is not what its place should have")
        found.append((commit, each))
    if slots:
        raise Uneven(f"message {next(iter(slots.values()))[1]} has no record in its place")
    return Even(commits=commits, pairs=pairs, in_flight=in_flight, ahead=ahead)


def require_order(records: Iterable[PlainRecord]) -> None:
    """Raise Uneven unless the records of each key are in the order of their commits."""
    seen: dict[tuple[str, int, int, int], tuple[int, int]] = {}
    for each in sorted(records, key=lambda record: record.offset):
        if each.key_hash is not None:
            key = each.topic, each.partition, each.shard, each.key_hash
            place = each.batch_no, each.index
            if place < seen.get(key, place):
                raise Uneven(f"message {each.message_id} is out of order")
            seen[key] = place


def require_places(records: Iterable[PlainRecord], partitions: Mapping[str, int]) -> None:
    """Raise Uneven for a record outside the partition of its key, in these topics."""
    for each in records:
        count = partitions.get(each.topic)
        if count and each.home is not None and each.home % count != each.partition:
            raise Uneven(f"message {each.message_id} is not in the partition of its key")


def _slots(
    listed: Mapping[int, Sequence[ListedManifest]], commits: Iterable[LoggedCommit]
) -> tuple[dict[Slot, tuple[LoggedCommit | None, str]], list[LoggedCommit]]:
    """Return by slot the commit and its message id, and the commits above the last manifest."""
    unread: dict[int, list[LoggedCommit]] = defaultdict(list)
    for each in commits:
        unread[each.shard].append(each)
    slots: dict[Slot, tuple[LoggedCommit | None, str]] = {}
    for shard, some in listed.items():
        for _, _, manifest in some:
            count = len(manifest.entries)
            own, rest = unread[shard][:count], unread[shard][count:]
            past = bool(rest) and (rest[0].xid, rest[0].n) <= manifest.to
            if past or len(own) < count or (own and (own[-1].xid, own[-1].n) > manifest.to):
                raise Uneven(f"batch {manifest.batch_no} of shard {shard} is not its range")
            for index, (commit, entry) in enumerate(zip(own, manifest.entries, strict=True)):
                if split_message_id(entry.message_id)[0] != commit.half_id:
                    raise Uneven(f"batch {manifest.batch_no} of shard {shard} is not its range")
                name = str(UUID(bytes=entry.message_id))
                slots[shard, manifest.batch_no, index] = commit, name
            unread[shard] = rest
    return slots, [each for some in unread.values() for each in some]


def _is_record_of(record: PlainRecord, commit: LoggedCommit, message_id: str) -> bool:
    same = (record.half_id, record.digest, record.message_id)
    own_shard = record.shard % SHARDS == record.half_id & (SHARDS - 1)
    return own_shard and same == (commit.half_id, commit.digest, message_id)
