"""The settings of operators reach the options of a run."""

from __future__ import annotations

import re

import pytest

from outbox.errors import ConfigurationError
from outbox.messages.manifest import Position
from outbox.settings.environment import load_settings
from spark.columns.slot import INDEX_BITS
from spark.compare.bucket_checksums import bucket_bits
from spark.cut.sources import shard_predicates
from spark.wiring import run_options


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
    options = run_options(
        load_settings({"OUTBOX_RECONCILE_BUCKET_MESSAGES": "256"}), {}, "file:/stage", "4.0.0"
    )
    assert options.bucket_messages == 256


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("PG_CONNECTIONS", "0", "greater than or equal to 1"),
        ("PG_CONNECTIONS", "17", "less than or equal to 16"),
        ("BUCKET_MESSAGES", "0", "greater than or equal to 1"),
        ("STAGE_KEEP_SECONDS", "3599", "greater than or equal to 3600"),
        ("HOLD_SECONDS", "-1", "greater than or equal to 0"),
    ],
)
def test_an_unusable_setting_is_refused_by_name(name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"OUTBOX_RECONCILE_{name}: .*{said}"):
        load_settings({f"OUTBOX_RECONCILE_{name}": text})
