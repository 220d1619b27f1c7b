"""The verifier and endpoint in shell pass the shared vectors and the kit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.languages.fixtures_languages import EXAMPLES, PLAIN, verifies
from tests.fixtures_paths import PROJECT
from tests.integration.check_endpoints.fixtures_cgi import cgi_server

pytestmark = pytest.mark.deep

VECTORS = json.loads((PROJECT / "docs/schemas/check-vectors.json").read_text("utf-8"))["vectors"]
SECRET = VECTORS[0]["secret"]
GROUP = "billing"
NEEDS = ("bash", "openssl", "jq")
COMMAND = ("bash", str(EXAMPLES / "shell" / "check-endpoint.sh"))


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    """Skip where a program is missing, and name it."""
    missing = next((each for each in NEEDS if shutil.which(each) is None), None)
    if missing is not None:
        pytest.skip(f"{missing} is not on this machine")


def test_the_verifier_agrees_with_every_vector(tmp_path: Path) -> None:
    results = {each["name"]: verifies((*COMMAND, "verify"), each, tmp_path) for each in VECTORS}
    assert results == {each["name"]: each["verifies"] for each in VECTORS}


@pytest.fixture
def counted(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which each run of openssl leaves a line."""
    folder, real = tmp_path / "bin", shutil.which("openssl")
    folder.mkdir()
    program = folder / "openssl"
    program.write_text(f'#!/bin/sh\necho run >>{tmp_path}/runs\nexec {real} "$@"\n')
    program.chmod(0o755)
    return PLAIN | {"PATH": f"{folder}:{PLAIN['PATH']}"}


def test_the_endpoint_passes_every_case_of_the_kit(tmp_path: Path) -> None:
    transactions = tmp_path / "transactions"
    transactions.write_text("invoice-1 ROLLBACK\ninvoice-7731 COMMIT\n")
    env = {"CHECK_SECRET": SECRET, "PRODUCER_GROUP": GROUP, "TRANSACTIONS": str(transactions)}
    with cgi_server(COMMAND, PLAIN | env) as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "cli", "-o", "json", "--quiet", "check", "simulate"),
                *("--url", url, "--producer-group", GROUP, "--batch", "--within", "30"),
                *("--transaction-id", "invoice-7731", "--expect", "COMMIT"),
            ],
            env=PLAIN | {"OUTBOX_CHECK_SECRET": SECRET},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stderr == ""
    assert [row for row in json.loads(done.stdout) if not row["passed"]] == []
    assert done.returncode == 0
