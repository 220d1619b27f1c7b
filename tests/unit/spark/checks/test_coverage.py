"""What is wrong with the manifests of a shard, over several runs."""

from __future__ import annotations

from spark.checks.coverage import break_findings
from tests.unit.spark.fixtures_suspects import HALF


def test_a_later_break_of_a_shard_keeps_the_evidence_of_the_earlier_one() -> None:
    """The runs that come after a break read neither it nor the lost row of the commit log again."""
    early, late = (
        {"partition": HALF.shard, "offset": offset, "batch_no": offset, "fault": "gap in batch_no"}
        for offset in (3, 8)
    )
    (first,) = break_findings([early], [HALF])
    (second,) = break_findings([late], [], [first])
    (whole,) = break_findings([late, early], [HALF])
    assert second == whole
    assert second.finding_id == first.finding_id
