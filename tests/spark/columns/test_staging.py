"""The stage of a run is in the folder of its reports, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from pyspark.sql import SparkSession

from outbox.settings.environment import load_settings
from spark.columns.staging import run_folder, stage_frame
from spark.wiring import stage_uri
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

FOLDER = "a folder, 100%20 of #1 (ä) $x ${y} 'a' \"b\" [c] {d,e} f*?: g\\h " + 140 * "i"


def test_a_stage_is_in_its_folder_whatever_that_is_called(
    session: SparkSession, tmp_path: Path
) -> None:
    """Nothing of it is left, nor of a run of the installation that was killed."""
    reports, own, other = tmp_path / FOLDER, UUID(int=1), UUID(int=2)
    settings = load_settings({"OUTBOX_RECONCILE_REPORT_DIR": str(reports)})
    for installation in (own, other):
        killed = f"{stage_uri(settings, installation)}/killed/rows"
        assert stage_frame(session.range(9), killed).count() == 9
    with run_folder(session, stage_uri(settings, own)) as uri:
        assert stage_frame(session.range(9), f"{uri}/rows").count() == 9
        assert len(list(reports.glob("*/*/rows"))) == 2
    assert [each.name for each in reports.iterdir()] == [f".stage-{other}"]


def test_two_installations_have_no_stage_in_common() -> None:
    settings = load_settings({"OUTBOX_RECONCILE_STAGE_URI": "s3a://bucket/stage/"})
    uris = {stage_uri(settings, UUID(int=number)) for number in (1, 2)}
    assert uris == {f"s3a://bucket/stage/{UUID(int=number)}" for number in (1, 2)}
