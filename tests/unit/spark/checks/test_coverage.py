"""What is wrong with the manifests of a shard, over several runs."""

from __future__ import annotations

from spark.checks.coverage import break_findings
from tests.unit.spark.fixtures_suspects import COMMITTED, HALF


def test_a_later_break_of_a_shard_keeps_the_evidence_of_the_earlier_one() -> None:
    """The manifests of the earlier one may have expired since."""
    early, late = (
        {"partition": HALF.shard, "offset": offset, "batch_no": offset, "fault": "gap in batch_no"}
        for offset in (3, 8)
    )
    (first,) = break_findings([early], [COMMITTED])
    (second,) = break_findings([late], [], [first])
    (whole,) = break_findings([late, early], [COMMITTED])
    assert second == whole
    assert second.finding_id == first.finding_id
