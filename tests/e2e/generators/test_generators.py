"""Clients that generators make of the contract: each compiles, and sends a message."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from outbox.settings.environment import process_environment
from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import QUICK_BUILD
from tests.fixtures_npm import install_locked
from tests.fixtures_paths import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

HERE = Path(__file__).parent
DOCUMENT = PROJECT / "api" / "openapi.json"
NEEDS = {
    "openapi-generator-java": ("java", "javac", "mvn"),
    "openapi-generator-go": ("java", "go"),
    "openapi-generator-python": ("java",),
    "openapi-generator-typescript-fetch": ("java", "node", "npm"),
    "openapi-generator-rust": ("java", "cargo"),
    "oapi-codegen": ("go",),
    "openapi-python-client": (),
    "openapi-typescript": ("node", "npm"),
}
"""The programs that each folder needs to make a client and to run its own program with it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of this folder with the contract and the locked generators."""
    place = tmp_path_factory.mktemp("work") / "generators"
    shutil.copytree(HERE, place)
    shutil.copy(DOCUMENT, place)
    install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    install += ["--require-hashes", "-r", "requirements.txt", "--target", "site"]
    subprocess.run(install, cwd=place, check=True)
    if shutil.which("npm") is not None:
        install_locked(HERE, place)
    return place


@pytest.fixture(scope="module")
def environment(service: Service, place: Path) -> dict[str, str]:
    """Return the environment of every program."""
    found = process_environment() | QUICK_BUILD
    bins = [place / "site/bin", place / "node_modules/.bin", Path(sys.executable).parent]
    return found | {
        "PATH": ":".join([*map(str, bins), found["PATH"]]),
        "PYTHONPATH": str(place / "site"),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "OUTBOX_API_URL": service.facts()["api_url"],
        "PRODUCER_GROUP": service.group("http://127.0.0.1:9999/outbox/check"),
    }


@pytest.mark.parametrize("generator", NEEDS)
def test_a_generated_client_prepares_a_message_ends_it_and_gets_it(
    generator: str, service: Service, place: Path, environment: dict[str, str]
) -> None:
    for program in NEEDS[generator]:
        if not is_there(program):
            pytest.skip(f"{program} is not on this machine")
    topic = service.new_topic(generator)
    done = subprocess.run(
        ["bash", "-eu", "run.sh"],
        cwd=place / generator,
        env=environment | {"TOPIC": topic},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = service.records(topic)
    assert record.value == b"invoice"
    assert done.stdout.endswith(f"{record.message_id} PUBLISHED {record.offset}\n")


def is_there(program: str) -> bool:
    """Tell whether a program can be run; rustup's cargo without a toolchain cannot."""
    if program == "cargo" and shutil.which(program) is not None:
        return subprocess.run([program, "--version"], capture_output=True).returncode == 0
    return shutil.which(program) is not None
