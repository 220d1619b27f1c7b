"""Settings for other stores never reach the stores of a folder, in the audit's program neither."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration.cli.dev.fixtures_dev_folder import STATE, run_in, write_dev_file

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


@pytest.mark.parametrize("by_file", [False, True])
def test_the_audit_of_a_folder_gets_no_secret_for_other_stores(
    python: Path, tmp_path: Path, by_file: bool
) -> None:
    write_dev_file(tmp_path)
    given = SECRETS
    if by_file:
        for name, text in SECRETS.items():
            (tmp_path / name).write_text(text)
        given = {f"{name}_FILE": str(tmp_path / name) for name in SECRETS}
    done = run_in(tmp_path, [python, "-m", "cli", "reconcile", "run"], given)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "OUTBOX_DATABASE_URL": STATE.database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": STATE.kafka_bootstrap_servers,
        "OUTBOX_KAFKA_CONFIG": "{}",
    }
