"""A step of the set-up that is terminated takes its command along."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from devservers.artifacts import PROJECT_ROOT
from tests.fixtures_waiting import wait_for


def test_a_terminated_step_takes_its_command_along(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = ["sh", "-c", f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 60"]
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.setup_step", "sleeping", *command],
        cwd=PROJECT_ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(note.exists)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "sleeping\n"
    command_files = Path("/proc", note.read_text().strip())
    wait_for(lambda: not command_files.exists())
