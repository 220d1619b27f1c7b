"""Settings for other stores never reach the stores of a folder, in the audit's program neither."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.invocation.dev_state import DevState, write_state
from outbox.settings.environment import process_environment

VENV = Path(sys.executable).parent.parent
SHOW = """#!{python}
import json, os
print(json.dumps({{name: text for name, text in os.environ.items() if name[:7] == "OUTBOX_"}}))
"""
SECRETS = {
    "OUTBOX_KAFKA_CONFIG": '{"sasl.password":"canary"}',
    "OUTBOX_RECONCILE_REPLICA_URL": "postgresql://canary@db.example.com/outbox",
}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Return an interpreter whose `outbox-reconcile` prints its settings."""
    home = tmp_path / "venv"
    (home / "bin").mkdir(parents=True)
    (home / "pyvenv.cfg").write_bytes((VENV / "pyvenv.cfg").read_bytes())
    (home / "lib").symlink_to(VENV / "lib")
    (home / "bin" / "python").symlink_to(sys.executable)
    program = home / "bin" / "outbox-reconcile"
    program.write_text(SHOW.format(python=sys.executable))
    program.chmod(0o755)
    return home / "bin" / "python"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which `outbox dev` seems to run."""
    (tmp_path / ".outbox-dev").mkdir()
    state = DevState(
        api_url="http://127.0.0.1:1",
        kafka_bootstrap_servers="127.0.0.1:2",
        database_url="postgresql://outbox:x@127.0.0.1:3/outbox",
        pids={"api": os.getpid()},
        api_key=None,
        version="0",
    )
    write_state(tmp_path / ".outbox-dev", state)
    return tmp_path


def settings_of_the_audit(python: Path, folder: Path, **settings: str) -> dict[str, str]:
    """Run `outbox reconcile run` in a folder; return the settings that its program has."""
    inherited = process_environment().items()
    clean = {name: text for name, text in inherited if not name.startswith("OUTBOX_")}
    done = subprocess.run(
        [python, "-m", "cli", "reconcile", "run"],
        cwd=folder,
        env={**clean, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown: dict[str, str] = json.loads(done.stdout)
    return shown


@pytest.mark.parametrize("by_file", [False, True])
def test_the_audit_of_a_folder_gets_no_secret_for_other_stores(
    python: Path, folder: Path, by_file: bool
) -> None:
    given = SECRETS
    if by_file:
        for name, text in SECRETS.items():
            (folder / name).write_text(text)
        given = {f"{name}_FILE": str(folder / name) for name in SECRETS}
    shown = settings_of_the_audit(python, folder, **given)
    assert shown == {
        "OUTBOX_DATABASE_URL": "postgresql://outbox:x@127.0.0.1:3/outbox",
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:2",
        "OUTBOX_KAFKA_CONFIG": "{}",
    }
