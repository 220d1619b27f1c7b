"""A set-up reports each step and shows that a long one still runs; without work it is silent."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devservers.artifacts import PROJECT_ROOT
from outbox.settings.environment import process_environment
from tests.fixtures_waiting import wait_for

COPIED = ("Makefile", "pyproject.toml", "pom.xml", "chaos/pyproject.toml", "requirements/dev.txt")
INTERPRETER = f"""#!/bin/sh
# An interpreter whose pip installs nothing; its virtual environments are folders with itself.
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/outbox" ;;
  "-m pip "*|"dev --fetch") exit ${{INSTALLATION:-0}} ;;
  *) exec {sys.executable} "$@" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Build what `make setup` reads of a clone, with an interpreter that installs nothing."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT_ROOT / name, tmp_path / name)
    for folder in ("cli", "deploy"):
        shutil.copytree(PROJECT_ROOT / folder, tmp_path / folder)
    (tmp_path / ".runtime").mkdir()
    interpreter = tmp_path / "python"
    interpreter.write_text(INTERPRETER)
    interpreter.chmod(0o755)
    return tmp_path


def make_setup(clone: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `make setup` there."""
    return subprocess.run(
        ["make", "-s", "setup", f"PYTHON={clone / 'python'}"],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=60,
        env={**process_environment(), **environment},
    )


def test_a_set_up_whose_packages_cannot_be_installed_fails_and_begins_there_again(
    clone: Path,
) -> None:
    assert make_setup(clone, INSTALLATION="3").returncode != 0
    again = make_setup(clone)
    assert again.returncode == 0
    assert again.stderr.startswith("installing ")


def test_a_terminated_step_takes_its_command_along(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = ["sh", "-c", f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 60"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.dev.setup_step", "sleeping", *command],
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
