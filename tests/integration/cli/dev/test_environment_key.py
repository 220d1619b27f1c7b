"""The key of the environment is for the service of the environment, never for one of a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fixtures_http_server import QuietHandler, http_server
from tests.fixtures_programs import program
from tests.integration.cli.dev.fixtures_dev_folder import run_in, write_dev_file


@dataclass(frozen=True, slots=True)
class Recorder:
    """A server that answers every request with an empty list, and the keys it was shown."""

    url: str
    shown: list[str | None] = field(default_factory=list)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Run the server for the test."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            server.shown.append(self.headers["authorization"])
            self.answer_json({"data": [], "next_cursor": None, "has_more": False})

    with http_server(Handler) as url:
        server = Recorder(url)
        yield server


def list_keys(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `outbox key list` in a folder."""
    return run_in(folder, [program("outbox"), "key", "list"], settings)


@pytest.mark.parametrize("own_key", [None, "obx_of_the_folder"])
def test_the_key_of_the_environment_is_not_shown_to_an_address_from_a_folder(
    tmp_path: Path, recorder: Recorder, own_key: str | None
) -> None:
    write_dev_file(tmp_path, api_url=recorder.url, api_key=own_key)
    done = list_keys(tmp_path, OUTBOX_API_KEY="canary")
    assert done.returncode == 0, done.stderr
    assert recorder.shown == [f"Bearer {own_key}" if own_key else None]
    assert done.stderr.startswith("OUTBOX_API_KEY is not used")


def test_it_is_shown_to_the_service_of_the_environment(tmp_path: Path, recorder: Recorder) -> None:
    done = list_keys(tmp_path, OUTBOX_API_KEY="canary", OUTBOX_API_URL=recorder.url)
    assert done.returncode == 0, done.stderr
    assert recorder.shown == ["Bearer canary"]
