"""The settings of operators reach the options of a run."""

from __future__ import annotations

import re

import pytest

from outbox.messages.manifest import Position
from spark.columns.slot import INDEX_BITS
from spark.compare.bucket_checksums import bucket_bits
from spark.cut.sources import shard_predicates


@pytest.mark.parametrize("connections", [1, 4, 5, 16])
def test_so_many_connections_read_each_shard_once(connections: int) -> None:
    predicates = shard_predicates({3: Position(17, 2)}, connections)
    shards = re.findall(r"shard = (\d+) AND xid >= (\d+)", " OR ".join(predicates))
    assert sorted((int(shard), int(xid)) for shard, xid in shards) == [
        (shard, 17 if shard == 3 else 0) for shard in range(16)
    ]
    assert (len(predicates), all(predicates)) == (connections, True)


def test_a_bucket_spans_as_many_batches_as_hold_so_many_messages() -> None:
    assert bucket_bits(1_000_000, 10_000, 1) == INDEX_BITS
    assert bucket_bits(1_000_000, 10_000, 1600) == INDEX_BITS + 4
