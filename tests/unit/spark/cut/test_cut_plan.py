from __future__ import annotations

from datetime import UTC, datetime

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Offsets, Partition
from outbox.reconciliation.snapshot import RelayCut, SnapshotIdentity
from spark.cut import cut_plan

A, B = Partition("points", 0), Partition("points", 1)


def plan(visible: str = "760:760:", n: int = 1) -> cut_plan.Plan:
    """Return a plan of one shard and one partition."""
    return cut_plan.Plan(
        log=cut_plan.LogCut(
            progress_topic="outbox.progress",
            manifests=(),
            records=(cut_plan.Range(partition=A, start=0, end=7),),
        ),
        shards=(cut_plan.ShardCut(shard=3, batch_no=2, position=Position(9, n)),),
        snapshot=SnapshotIdentity(
            exported_id="1", visible=visible, taken_at=datetime(2026, 1, 1, tzinfo=UTC)
        ),
    )


def test_a_partition_waits_while_its_stable_end_is_below_the_high_watermark() -> None:
    highs = Offsets(offsets={A: 10, B: 10})
    assert cut_plan.open_transactions(highs, Offsets(offsets={A: 9, B: 10})) == (A,)
    assert cut_plan.open_transactions(highs, Offsets(offsets={A: 12, B: 10})) == ()


def test_only_partitions_that_answered_twice_are_read() -> None:
    ranges = cut_plan.ranges(Offsets(offsets={A: 1}), Offsets(offsets={A: 5, B: 5}))
    assert ranges == (cut_plan.Range(partition=A, start=1, end=5),)


def test_a_partition_without_an_answer_is_a_gap_with_its_reason() -> None:
    whole = Offsets(offsets={A: 1, B: 1})
    silent = Offsets(offsets={A: 1}, errors={B: "offline"})
    (gap,) = cut_plan.gaps([A, B], (whole, silent), ())
    assert (gap.cause, gap.partition, gap.reason) == ("UNVERIFIABLE/not_read", B, "offline")


def test_a_partition_with_an_open_transaction_is_a_gap() -> None:
    whole = Offsets(offsets={A: 1, B: 1})
    (gap,) = cut_plan.gaps([A, B], (whole,), (A,))
    assert (gap.cause, gap.partition) == ("UNVERIFIABLE/open_transaction", A)


def test_the_same_cut_is_the_same_run() -> None:
    assert plan().run_id == plan().run_id
    assert plan().run_id != plan(visible="761:761:").run_id
    assert plan().run_id != plan(n=2).run_id


def test_a_gap_of_retention_leaves_the_topic_to_be_judged_by_place() -> None:
    details = ("expired", "not_read", "open_transaction")
    gaps = tuple(
        cut_plan.Gap(cause=f"UNVERIFIABLE/{each}", partition=Partition(each, 0), reason="")
        for each in details
    )
    log = cut_plan.LogCut(progress_topic="progress", manifests=(), records=(), gaps=gaps)
    assert log.unread_topics == {"not_read", "open_transaction"}
    assert log.expired_topics == {"expired"}


def test_a_shard_without_manifests_is_judged_from_where_its_relay_is_if_they_have_expired() -> None:
    log = [
        cut_plan.Range(partition=Partition("progress", shard), start=7, end=7) for shard in range(4)
    ]
    rows = [RelayCut(0, 9, 2, 5, 7), RelayCut(1, 9, 2, 5, 6), RelayCut(2, 8, 1, 4, 6)]
    expired = cut_plan.expired_shards(rows, log)
    assert expired == tuple(rows[1:])
    known = cut_plan.ShardCut(shard=2, batch_no=6, position=Position(10, 1))
    assert {*cut_plan.with_expired([known], expired)} == {
        known,
        cut_plan.ShardCut(shard=1, batch_no=5, position=Position(9, 2), baseline=Position(9, 2)),
    }
