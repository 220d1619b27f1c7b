"""The session and the program of the README work as they are printed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devservers.loopback import free_ports, is_free
from outbox.settings.environment import process_environment
from tests.e2e.fixtures_service import Service
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

PAGE = (PROJECT / "README.md").read_text("utf-8")
SESSION, NEW_SECRET, COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
*INSTALL, SEND, ANSWER = (line.partition("#")[0].strip(" &") for line in COMMANDS.splitlines())
ENVIRONMENT = "billing-env"
PRINTED_PORT = "9000"
SHOW_EXPORTED = '\nprintf "\\n%s\\n%s" "$OUTBOX_API_URL" "$CHECK_SECRET"\n'


@pytest.fixture(scope="module")
def port() -> str:
    """Return a free port that stands for the printed one of the check endpoint."""
    return str(free_ports(1)[0])


@pytest.fixture(scope="module")
def folder(service: Service, port: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that looks like the project's to the commands of the README."""
    place = tmp_path_factory.mktemp("reader")
    (place / ".outbox-dev").symlink_to(service.data_dir)
    (place / ENVIRONMENT).symlink_to(PROJECT / ".venv")
    (place / ".venv").symlink_to(PROJECT / ".venv")
    (place / "billing.py").write_text(PROGRAM.replace(PRINTED_PORT, port))
    return place


@pytest.fixture(scope="module")
def typed(folder: Path, port: str) -> list[str]:
    """Return what the curl session answers last, and the two variables that it exports."""
    script = SESSION.replace(PRINTED_PORT, port) + SHOW_EXPORTED
    run = subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def environment(typed: list[str]) -> dict[str, str]:
    """Return the environment of the terminal in which the session was typed."""
    return {**process_environment(), "OUTBOX_API_URL": typed[-2], "CHECK_SECRET": typed[-1]}


@pytest.fixture
def endpoint(folder: Path, port: str, environment: dict[str, str]) -> Iterator[None]:
    """Run the check endpoint of the README."""
    command = ANSWER.replace(PRINTED_PORT, port).split()
    process = subprocess.Popen(command, cwd=folder, env=environment)
    try:
        wait_for(lambda: not is_free(int(port)))
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_the_curl_session_publishes_a_record(service: Service, typed: list[str]) -> None:
    assert json.loads(typed[0])["state"] == "PUBLISHED"
    assert b'{"invoice": 7731}' in [each.value for each in service.records("invoices.issued")]


def test_a_session_that_is_typed_again_says_what_is_missing_and_a_new_secret_is_made(
    folder: Path, port: str, typed: list[str]
) -> None:
    script = SESSION.replace(PRINTED_PORT, port) + NEW_SECRET + SHOW_EXPORTED
    run = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    assert run.stderr.startswith("no check_secret in: {'producer_group': 'billing'")
    assert run.stderr.count("\n") == 1
    assert run.stdout.splitlines()[-2] == typed[-2]
    assert run.stdout.splitlines()[-1].startswith("whsec_")


def test_the_program_publishes_a_record(
    service: Service, folder: Path, environment: dict[str, str]
) -> None:
    message_id, printed = sent_by_program(folder, environment)
    assert "state='PUBLISHED'" in printed
    assert service.get(message_id)["state"] == "PUBLISHED"


def sent_by_program(folder: Path, environment: dict[str, str]) -> tuple[str, str]:
    """Run the program of the README; return the id of its message, and what it prints."""
    run = subprocess.run(SEND.split(), cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (message_id,) = re.findall(r"message_id='([\w-]+)'", run.stdout)
    return str(message_id), run.stdout


@pytest.mark.deep
def test_the_client_that_is_installed_as_printed_runs_the_program_alone(
    service: Service, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "outbox_client").symlink_to(PROJECT / "outbox_client")
    (tmp_path / "billing.py").write_text(PROGRAM)
    script = "\n".join(INSTALL)
    run = subprocess.run(["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    message_id, _ = sent_by_program(tmp_path, environment)
    service.wait_state(message_id, "PUBLISHED")
    listed = subprocess.run(
        [tmp_path / ENVIRONMENT / "bin" / "pip", "list", "--format", "json"],
        capture_output=True,
        check=True,
    )
    installed = {each["name"] for each in json.loads(listed.stdout)}
    assert {"outbox-client", "fastapi", "SQLAlchemy"} <= installed
    assert not {"outbox", "psycopg", "confluent-kafka", "aiohttp", "alembic"} & installed


@pytest.mark.usefixtures("endpoint")
def test_the_check_endpoint_rolls_back_a_message_that_nobody_ends(service: Service) -> None:
    message_id = service.prepare("billing", "invoices.issued", check_immunity_seconds=1)
    assert service.wait_state(message_id, "ROLLED_BACK")["decided_by"] == "check"
