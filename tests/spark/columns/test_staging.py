"""The stage of a run is in the folder of its reports, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from outbox.settings.environment import load_settings
from spark.columns.staging import stage_frame
from spark.wiring import open_stage
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

FOLDER = "a folder, 100%20 of #1 (ä) $x ${y} 'a' \"b\" [c] {d,e} f*?: g\\h " + 140 * "i"


def test_a_stage_is_in_its_folder_whatever_that_is_called(
    session: SparkSession, tmp_path: Path
) -> None:
    reports = tmp_path / FOLDER
    with open_stage(load_settings({"OUTBOX_RECONCILE_REPORT_DIR": str(reports)})) as uri:
        assert stage_frame(session.range(9), f"{uri}/rows").count() == 9
        assert list(reports.glob("*/rows/*.parquet"))
    assert (list(tmp_path.iterdir()), list(reports.iterdir())) == ([reports], [])
