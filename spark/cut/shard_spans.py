"""What of each shard a run judges, and what its relay can have published since. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from outbox.messages.manifest import START, Position
from outbox.messages.message_id import SHARDS
from outbox.reconciliation.snapshot import RelayProgress
from spark.cut.cut_plan import ShardCut


def newest_batches(
    shards: Iterable[ShardCut], progress: Mapping[int, RelayProgress]
) -> dict[int, int]:
    """Return by shard the last batch that can be in the log; ``progress`` is that of its relay."""
    newest = {shard: sum(each) for shard, each in progress.items()}
    for each in shards:
        known = progress.get(each.shard, RelayProgress(0, 0))
        newest[each.shard] = max(known.batch_no, each.batch_no) + known.in_flight
    return newest


def judged_spans(
    shards: Iterable[ShardCut], seen: Mapping[int, Position]
) -> dict[int, tuple[Position, Position]]:
    """Return by shard what a run judges: after the first position, up to the second.

    What is older than the baseline is left out, and what was ``seen`` by the run before.
    """
    cuts = {each: ShardCut(shard=each, batch_no=0, position=START) for each in range(SHARDS)}
    cuts |= {each.shard: each for each in shards}
    return {
        shard: (max(each.baseline, seen.get(shard, START)), each.position)
        for shard, each in cuts.items()
    }
