"""Mutants of the folds and of the stretches that they stand on."""

from __future__ import annotations

from typing import Final

from spark import fold, stretches
from tests.spark import test_fold
from tests.spark.mutant import Mutant, Needs

LANES: Final = "same[0] & same[1] & same[2]"
EACH_LANE: Final = test_fold.test_each_lane_sees_what_the_two_others_do_not

MUTANTS: Final = (
    Mutant(
        name="count lane dropped",
        module=fold,
        rule=LANES,
        broken="same[1] & same[2]",
        killer=EACH_LANE,
        needs=Needs.SPARK,
        given={"apart": test_fold.pairs_of_opposites},
    ),
    Mutant(
        name="combined lane dropped",
        module=fold,
        rule=LANES,
        broken="same[0] & same[2]",
        killer=EACH_LANE,
        needs=Needs.SPARK,
        given={"apart": test_fold.one_for_another},
    ),
    Mutant(
        name="sum lane dropped",
        module=fold,
        rule=LANES,
        broken="same[0] & same[1]",
        killer=EACH_LANE,
        needs=Needs.SPARK,
        given={"apart": test_fold.half_for_half},
    ),
    Mutant(
        name="records without a place in no bucket",
        module=fold,
        rule="    placed = folded(records, bits)",
        broken='    placed = folded(records.where("slot IS NOT NULL"), bits)',
        killer=test_fold.test_a_row_without_a_slot_always_differs,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="a second record elsewhere meets no commit",
        module=fold,
        rule="dirty.unionByName(touched).distinct()",
        broken="dirty",
        killer=test_fold.test_a_record_elsewhere_makes_the_bucket_of_its_message_odd,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="a place beyond its batch",
        module=stretches,
        rule='inside = F.col("rank") < F.col("batch.to_rank")',
        broken="inside = F.lit(True)",
        killer=test_fold.test_a_stretch_lies_in_one_batch_and_one_side_of_the_cut,
        needs=Needs.SPARK,
    ),
)
