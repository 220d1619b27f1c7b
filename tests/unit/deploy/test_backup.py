"""deploy/backup.sh starts again what it has stopped, and shows no half backup as a whole one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT

DOCKER = """#!/bin/bash
echo "$*" >>"$LOG"
case "$*" in
    *" ps "*"--status running"*) printf 'postgres\\napi\\n' ;;&
    *" ps "*"--status restarting"*) printf 'checker\\n' ;;
    *" ps "*) ;;
    *"$FAILS"*) exit 1 ;;
    *" run "*) echo data ;;
esac
"""
"""Stands for the container engine: it writes down what it was asked, and one thing fails."""
STARTED = "compose up --detach --wait postgres api checker"
"""The checker was waiting for its next start, as after a crash."""


def back_up(folder: Path, fails: str) -> tuple[int, list[str]]:
    """Run the script in a folder of the test; return its exit code and what it asked."""
    (folder / "deploy/secrets").mkdir(parents=True)
    (folder / "deploy/secrets/auth_pepper").write_text("p")
    shutil.copy(PROJECT / "deploy/backup.sh", folder / "deploy")
    (folder / "docker").write_text(DOCKER)
    (folder / "docker").chmod(0o755)
    log = folder / "asked"
    environment = {"PATH": f"{folder}:{os.defpath}", "LOG": str(log), "FAILS": fails}
    done = subprocess.run([folder / "deploy/backup.sh"], env=environment, timeout=60, check=False)
    return done.returncode, log.read_text().splitlines()


@pytest.mark.parametrize("fails", ["stop", "run --rm --no-deps -T --entrypoint tar kafka"])
def test_a_backup_that_fails_starts_the_stack_again_and_is_no_backup(
    tmp_path: Path, fails: str
) -> None:
    code, asked = back_up(tmp_path, fails)
    assert code == 1
    assert asked[-1] == STARTED
    assert {path.suffix for path in (tmp_path / "backups").iterdir()} == {".part"}
