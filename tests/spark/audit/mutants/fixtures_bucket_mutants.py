"""Mutants of the bucket checksums and of the segments below them."""

from __future__ import annotations

from typing import Final

from spark.columns import segments
from spark.compare import bucket_checksums
from tests.spark.audit.mutants.fixtures_mutant import Mutant, Needs
from tests.spark.columns import test_join_sizes
from tests.spark.compare import test_bucket_checksums

COMPONENTS: Final = "same[0] & same[1] & same[2]"
EACH_COMPONENT: Final = test_bucket_checksums.test_each_component_sees_what_the_two_others_miss

MUTANTS: Final = (
    Mutant(
        name="count component dropped",
        module=bucket_checksums,
        rule=COMPONENTS,
        broken="same[1] & same[2]",
        killer=EACH_COMPONENT,
        needs=Needs.SPARK,
        given={"apart": test_bucket_checksums.pairs_of_opposites},
    ),
    Mutant(
        name="combined component dropped",
        module=bucket_checksums,
        rule=COMPONENTS,
        broken="same[0] & same[2]",
        killer=EACH_COMPONENT,
        needs=Needs.SPARK,
        given={"apart": test_bucket_checksums.one_for_another},
    ),
    Mutant(
        name="sum component dropped",
        module=bucket_checksums,
        rule=COMPONENTS,
        broken="same[0] & same[1]",
        killer=EACH_COMPONENT,
        needs=Needs.SPARK,
        given={"apart": test_bucket_checksums.half_for_half},
    ),
    Mutant(
        name="records without a place in no bucket",
        module=bucket_checksums,
        rule="    placed = checksums(records, bits)",
        broken='    placed = checksums(records.where("slot IS NOT NULL"), bits)',
        killer=test_bucket_checksums.test_a_row_without_a_slot_always_differs,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="a second record elsewhere meets no commit",
        module=bucket_checksums,
        rule="dirty.unionByName(named).distinct()",
        broken="dirty",
        killer=test_bucket_checksums.test_a_record_elsewhere_makes_the_bucket_of_its_message_a_mismatch,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="a place beyond its batch",
        module=segments,
        rule='inside = F.col("rank") < F.col("batch.to_rank")',
        broken="inside = F.lit(True)",
        killer=test_bucket_checksums.test_a_segment_is_in_one_batch_and_on_one_side_of_the_cut,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="segments broadcast whatever their size",
        module=segments,
        rule='segments, ["shard", "xid"]',
        broken='F.broadcast(segments), ["shard", "xid"]',
        killer=test_join_sizes.test_a_frame_that_does_not_fit_into_the_driver_is_not_broadcast,
        needs=Needs.SPARK,
        given={
            "left": test_join_sizes.COMMITS,
            "right": test_join_sizes.SEGMENTS,
            "join": segments.open_commits,
        },
    ),
)
