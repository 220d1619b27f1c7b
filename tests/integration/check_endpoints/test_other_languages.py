"""The verifiers and endpoints in other languages pass the shared vectors and the kit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT
from tests.integration.check_endpoints.fixtures_languages import (
    LANGUAGES,
    PLAIN,
    Language,
    serving,
    verifies,
)

pytestmark = pytest.mark.deep

VECTORS = json.loads((PROJECT / "docs/schemas/check-vectors.json").read_text())["vectors"]
SECRET = VECTORS[0]["secret"]
GROUP = "billing"


@pytest.fixture(scope="module", params=LANGUAGES, ids=lambda language: language.name)
def example(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Language, tuple[str, ...]]:
    """Build the example of a language, or skip it and name what is missing."""
    language: Language = request.param
    missing = language.missing()
    if missing is not None:
        pytest.skip(f"{missing} is not on this machine")
    return language, language.make(tmp_path_factory.mktemp(language.name))


def test_the_verifier_agrees_with_every_vector(
    example: tuple[Language, tuple[str, ...]],
) -> None:
    _, command = example
    results = {vector["name"]: verifies(command, vector) for vector in VECTORS}
    assert results == {vector["name"]: vector["verifies"] for vector in VECTORS}


def test_the_endpoint_passes_every_case_of_the_kit(
    example: tuple[Language, tuple[str, ...]], tmp_path: Path
) -> None:
    language, command = example
    transactions = tmp_path / "transactions"
    transactions.write_text("invoice-1 ROLLBACK\ninvoice-7731 COMMIT\n")
    env = {"CHECK_SECRET": SECRET, "PRODUCER_GROUP": GROUP, "TRANSACTIONS": str(transactions)}
    with serving(language, command, env) as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "cli", "-o", "json", "--quiet", "check", "simulate"),
                *("--url", url, "--producer-group", GROUP, "--batch", "--within", "30"),
                *("--transaction-id", "invoice-7731"),
            ],
            env=PLAIN | {"OUTBOX_CHECK_SECRET": SECRET},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stderr == ""
    failed = [row for row in json.loads(done.stdout) if not row["passed"]]
    assert failed == []
    assert done.returncode == 0
