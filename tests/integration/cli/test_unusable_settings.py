"""Properties that no client of Kafka can have end every program with one line that names them."""

from __future__ import annotations

import subprocess

import pytest

from cli.invocation.exit_codes import ExitCode
from outbox.settings.environment import process_environment
from tests.fixtures_programs import program
from tests.integration.api.fixtures_keys import PEPPER, RING

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    "command",
    ["outbox-api", "outbox-checker", "outbox-reconcile run", "outbox doctor"],
)
def test_a_program_names_the_property_that_no_client_can_have(
    command: str, database_url: str
) -> None:
    settings = {
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_AUTH_PEPPER": PEPPER,
        "OUTBOX_ENCRYPTION_KEYS": RING,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "OUTBOX_KAFKA_CONFIG": '{"no.such.property": "x"}',
    }
    name, *words = command.split()
    done = subprocess.run(
        [program(name), *words],
        env=process_environment() | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert done.stderr.count("OUTBOX_KAFKA_CONFIG: ") == 1
    assert 'No such configuration property: "no.such.property"' in done.stderr
    assert "Exception" not in done.stderr
