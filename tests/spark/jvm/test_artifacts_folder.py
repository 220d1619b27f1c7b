"""A process with a session of Spark leaves its working folder as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = [*ON_SPARK, pytest.mark.deep]

PROGRAM = """
from pathlib import Path
from spark.jvm.session import RUNTIME_JARS, SessionSettings, spark_session

settings = SessionSettings(
    master="local[1]", jars_dir=RUNTIME_JARS, log_file=Path("log"), expected_records=1
)
with spark_session(settings) as session:
    print(session.range(3).count(), Path("artifacts").is_dir())
"""


def test_a_process_that_ends_leaves_no_folder_of_spark_s(tmp_path: Path) -> None:
    environment = {**process_environment(), "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["3", "True"], done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
