"""Any split of a history into runs ends with the findings that one run over all of it ends with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from outbox.settings.environment import process_environment
from spark.columns.frames import Frames
from spark.compare import open_items
from spark.cut import carry_over
from tests.spark.cut.fixtures_histories import History, any_histories, drawn
from tests.spark.cut.fixtures_history_runs import wrong_results
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

HISTORIES: Final = int(process_environment().get("OUTBOX_TEST_HISTORIES", "100"))


def simplest(found: Sequence[tuple[History, str]]) -> str:
    """Describe the wrongly judged history with the fewest events."""
    history, what = min(found, key=lambda each: len(each[0].commands))
    return f"{len(found)} wrong, the simplest: {history.commands} cut at {history.cuts}: {what}"


@pytest.mark.deep
def test_any_split_of_a_history_into_runs_ends_with_what_counting_finds(
    session: SparkSession, tmp_path: Path
) -> None:
    """So it is after every run: the first, one that continues it, and one that continues that."""
    for found in wrong_results(session, tmp_path, drawn(HISTORIES, any_histories(most_cuts=2))):
        assert not found, simplest(found)


def test_what_is_open_is_carried_by_name_or_not_at_all(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit in flight is read again by itself, its record that was ahead of it is not."""
    commits, records = [(7, "judged"), (9, "in_flight")], [(7, False), (9, True)]
    listings = session.createDataFrame([(7, "P")], "half_id bigint, status string")
    frames = Frames(
        manifests=listings,
        listings=listings,
        segments=listings,
        batches=listings,
        commits=session.createDataFrame(commits, "half_id bigint, standing string"),
        records=session.createDataFrame(records, "half_id bigint, ahead boolean"),
    )
    open_ids = frames.records.select("half_id")
    carried = open_items.carried_rows(open_ids, frames, ()) or ()
    assert sorted((side, half_id) for side, half_id, _ in carried) == [
        (carry_over.COMMIT, 7),
        (carry_over.LISTING, 7),
        (carry_over.RECORD, 7),
        (carry_over.RECORD, 9),
    ]
    monkeypatch.setattr(open_items, "MOST_ROWS", 3)
    assert open_items.carried_rows(open_ids, frames, ()) is None
