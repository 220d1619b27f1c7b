"""Acceptance: the stores after kills of everything, seen by producer, reader and Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.audit.audit import Audit
from spark.findings.verdict import Verdict
from tests.fixtures_kafka import committed_records
from tests.spark.audit.fixtures_storm import ENDS, Storm, planned, storm
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_runs import make_options, make_parts

pytestmark = [*REAL_STORES, pytest.mark.chaos, pytest.mark.deep]


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storm]:
    """The stores after the traffic of A18 under the kills of A20, A27 and A35."""
    with storm(tmp_path_factory.mktemp("storm")) as made:
        made.rage()
        yield made


def test_a27_whatever_is_killed_acknowledged_ends_stand_and_each_message_is_decided_once(
    after: Storm,
) -> None:
    """Kills at each single step: tests/contract/service and relay/takeover."""
    outcomes, numbers = after.outcomes(), range(len(after.message_ids))
    assert Counter(outcome for each in outcomes.values() for outcome in each) == planned(numbers)
    assert after.answered == {n: ENDS[n % 5] for n in numbers if n % 5 in ENDS}
    assert all(outcomes[number] == [decision] for number, decision in after.answered.items())
    committed = Counter(str(n).encode() for n in numbers if outcomes[n] == ["COMMIT"])
    records = committed_records(after.bootstrap_servers, after.topic, committed.total())
    assert Counter(record.value for record in records) == committed


def test_a40_spark_finds_nothing_wrong_with_what_the_kills_left(
    after: Storm, session: SparkSession, tmp_path: Path
) -> None:
    """Planted faults of each kind: faults/test_planted_faults.py."""
    report = Audit(make_parts(session, after), make_options(after, tmp_path)).run()
    committed = planned(range(len(after.message_ids)))["COMMIT"]
    assert report.findings == ()
    assert report.verdict is Verdict.CLEAN
    assert (report.counts.records, report.counts.judged) == (committed, committed)
