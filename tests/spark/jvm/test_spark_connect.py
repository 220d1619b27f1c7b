"""Our session on a real Spark Connect server: jars, settings, frames, the stage, a whole audit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devservers.child import CLEAN_ENVIRONMENT
from devservers.kafka import EmbeddedKafka
from tests.fixtures_paths import PROJECT
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.jvm.fixtures_clusters import SMALL_JOB, connect_server
from tests.spark.jvm.fixtures_planted_faults import causes_found, plant_faults

pytestmark = [*REAL_STORES, pytest.mark.deep]

AUDIT: Final = Path(sys.executable).parent / "outbox-reconcile"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one Spark Connect server."""
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


def test_an_audit_on_spark_connect_names_each_planted_fault_and_no_more(
    server: str, database_url: str, own_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    faults = plant_faults(database_url, own_broker.bootstrap_servers)

    done = _run(
        *(str(AUDIT), "run", "--report", str(tmp_path / "reports")),
        database_url=database_url,
        kafka_bootstrap_servers=own_broker.bootstrap_servers,
        reconcile_spark_remote=server,
        reconcile_spark_conf=json.dumps(SMALL_JOB),
        reconcile_stage_uri=(tmp_path / "stage").as_uri(),
    )

    assert done.returncode == 7, done.stderr[-2000:]
    (written,) = (tmp_path / "reports").glob("run_id=*/report.json")
    report = json.loads(written.read_text("utf-8"))
    assert causes_found(report) == faults
    assert report["coverage"]["ratio"] == 1
    (stage,) = (tmp_path / "stage").iterdir()
    assert not [each for each in stage.iterdir() if each.is_dir()], "the run emptied it"


def _run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing but these settings to its end."""
    ours = {f"OUTBOX_{name.upper()}": text for name, text in settings.items()}
    return subprocess.run(
        words,
        cwd=PROJECT,
        env={**CLEAN_ENVIRONMENT, **ours},
        capture_output=True,
        text=True,
        check=False,
    )
