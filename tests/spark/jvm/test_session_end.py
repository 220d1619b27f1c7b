"""The JVM of an audit ends without a word on stderr."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devservers.artifacts import PROJECT_ROOT
from outbox.settings.environment import process_environment
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = [*ON_SPARK, pytest.mark.deep]

PROGRAM = """
import logging, sys, time
from pathlib import Path
from spark.jvm.session import RUNTIME_JARS, SessionSettings, spark_session
settings = SessionSettings(master="local[1]", jars_dir=RUNTIME_JARS, log_file=Path(sys.argv[1]))
with spark_session(settings) as session:
    made = [session._jvm.java.lang.Object() for _ in range(5000)]
queue = session._sc._gateway._gateway_client.finalizer_deque
made.clear()  # Py4J tells the JVM of each on a thread of its own
waiting = len(queue)
while len(queue) == waiting:
    time.sleep(0.01)
logging.basicConfig(level=logging.INFO)  # Py4J says what it could not send
"""


def test_objects_that_are_released_at_the_end_cause_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "spark.log")],
        capture_output=True,
        text=True,
        env={**process_environment(), "PYTHONPATH": str(PROJECT_ROOT)},
        cwd=tmp_path,
        check=True,
    )
    assert done.stderr == ""
    assert not (tmp_path / "artifacts").exists()
