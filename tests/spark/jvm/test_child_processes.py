"""A start of Spark that is interrupted leaves no JVM."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from devservers.artifacts import PROJECT_ROOT
from outbox.settings.environment import process_environment
from tests.fixtures_waiting import wait_for

PROGRAM = """
import signal, sys
from pathlib import Path
from spark.jvm.session import RUNTIME_JARS, SessionSettings, spark_session
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
settings = SessionSettings(master="local[1]", jars_dir=RUNTIME_JARS, log_file=Path(sys.argv[1]))
try:
    with spark_session(settings):
        print("started")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


def java_below(process: int) -> bool:
    """Return whether a descendant of the process is a JVM."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, facts = stat.read_text().rpartition(")")
            is_child = int(facts.split()[1]) == process and facts.split()[0] != "Z"
            if is_child and ("java" in name or java_below(int(stat.parent.name))):
                return True
    return False


def test_an_interrupt_while_the_jvm_starts_leaves_none(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "spark.log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**process_environment(), "PYTHONPATH": str(PROJECT_ROOT)},
        cwd=tmp_path,
    ) as process:
        assert wait_for(lambda: java_below(process.pid), 60)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == "interrupted\n"
        assert not java_below(process.pid)
        out, err = process.communicate(timeout=60)
    assert (out, err) == ("", "")
