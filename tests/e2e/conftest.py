"""One ``outbox dev`` for all tests that do not stop or break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.fixtures_command_here import Command
from tests.e2e.fixtures_service import Service, outbox_dev


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a running service that tests share; each uses names of its own.

    It ends with the last of them: it would compute as long as the session has other tests.
    """
    with outbox_dev(tmp_path_factory.mktemp("dev") / "data") as running:
        yield running


@pytest.fixture
def outbox(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Return the command, configured by the environment as an operator would."""
    facts = service.facts()
    monkeypatch.setenv("OUTBOX_API_URL", facts["api_url"])
    monkeypatch.setenv("OUTBOX_DATABASE_URL", facts["database_url"])
    monkeypatch.setenv("OUTBOX_KAFKA_BOOTSTRAP_SERVERS", facts["kafka_bootstrap_servers"])
    return Command(capsys)
