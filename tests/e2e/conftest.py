"""One ``outbox dev`` for all tests, where and as a user may start it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.fixtures_command_here import Command
from tests.e2e.fixtures_service import FOLDER, FOR_OTHERS, Service, outbox_dev


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a running service that tests share; each uses names of its own.

    It ends with the last of them: it would compute as long as the session has other tests.
    """
    data = tmp_path_factory.mktemp("dev") / FOLDER / ".outbox-dev"
    with outbox_dev(data, **FOR_OTHERS, **broken_checker(tmp_path_factory)) as running:
        yield running


def broken_checker(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a folder with a module of the user that has the name of a package of the product."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "checker.py").write_text("raise ImportError('not our checker')\n")
    return {"PYTHONPATH": str(folder)}


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
