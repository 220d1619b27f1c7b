"""Any split of a history into runs ends with the findings that one run over all of it ends with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from outbox.settings.environment import process_environment
from tests.spark.cut.fixtures_histories import History, any_histories, drawn, touching
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
    histories = [*touching(), *drawn(HISTORIES, any_histories(most_cuts=2))]
    for found in wrong_results(session, tmp_path, histories):
        assert not found, simplest(found)
