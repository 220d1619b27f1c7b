"""The start of Spark on the machine of a user who has another Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

PROGRAM = """
import sys
from pathlib import Path
from spark.jvm.session import RUNTIME_JARS, SessionSettings, spark_session
log, memory = Path(sys.argv[1]), {"spark.driver.memory": sys.argv[2]}
settings = SessionSettings(master="local[1]", jars_dir=RUNTIME_JARS, log_file=log, extra=memory)
with spark_session(settings) as session:
    print(session.range(9).count(), session.conf.get("spark.of.another", None))
"""
OTHER_SPARK = {
    "PYSPARK_PYTHON": "/nowhere/python",
    "PYSPARK_SUBMIT_ARGS": "--of-another",
    "SPARK_HOME": "/nowhere",
    "SPARK_LOCAL_IP": "192.0.2.1",
    "SPARK_REMOTE": "sc://127.0.0.1:1",
}
ELSEWHERE = ("unshare", "--user", "--map-root-user", "--uts", "sh", "-c")
NO_SUCH_HOST = 'hostname nowhere.invalid && exec "$0" "$@"'


def started(
    folder: Path, *, prefix: Sequence[str] = (), memory: str = "1g", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Start Spark in a process of its own and count some rows."""
    program = [sys.executable, "-c", PROGRAM, str(folder / "spark.log"), memory]
    return subprocess.run(
        [*prefix, *program],
        env={**process_environment(), **variables},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep
def test_neither_another_spark_nor_the_name_of_the_host_reaches_a_run(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.of.another yes\n")
    other = {**OTHER_SPARK, "SPARK_CONF_DIR": str(tmp_path)}
    done = started(tmp_path, prefix=(*ELSEWHERE, NO_SUCH_HOST), **other)
    assert (done.returncode, done.stdout) == (0, "9 None\n"), done.stderr


def test_a_spark_that_does_not_start_names_the_cause(tmp_path: Path) -> None:
    without_java = started(tmp_path, JAVA_HOME="/nowhere").stderr.splitlines()[-1]
    assert "Spark did not start: " in without_java
    assert "/nowhere/bin/java: No such file or directory" in without_java
    wrong = started(tmp_path, memory="2x").stderr.splitlines()[-1]
    assert "Spark did not start: Invalid maximum heap size: -Xmx2x (see " in wrong
