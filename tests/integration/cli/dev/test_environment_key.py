"""The key of the environment is for the service of the environment, never for one of a folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli.invocation.dev_state import DevState, write_state
from outbox.settings.environment import process_environment
from tests.fixtures_http_server import QuietHandler, http_server
from tests.fixtures_programs import program


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


def run(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `outbox key list` in a folder."""
    inherited = process_environment().items()
    clean = {name: text for name, text in inherited if not name.startswith("OUTBOX_")}
    return subprocess.run(
        [program("outbox"), "key", "list"],
        cwd=folder,
        env={**clean, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def write_dev_file(folder: Path, url: str, key: str | None) -> None:
    """Write the file of a running `outbox dev`, as if its API had this URL."""
    (folder / ".outbox-dev").mkdir()
    state = DevState(
        api_url=url,
        kafka_bootstrap_servers="127.0.0.1:9092",
        database_url="postgresql://127.0.0.1:5432/outbox",
        pids={"api": os.getpid()},
        api_key=key,
        version="0",
    )
    write_state(folder / ".outbox-dev", state)


@pytest.mark.parametrize("own_key", [None, "obx_of_the_folder"])
def test_the_key_of_the_environment_is_not_shown_to_an_address_from_a_folder(
    tmp_path: Path, recorder: Recorder, own_key: str | None
) -> None:
    write_dev_file(tmp_path, recorder.url, own_key)
    done = run(tmp_path, OUTBOX_API_KEY="canary")
    assert done.returncode == 0, done.stderr
    assert recorder.shown == [f"Bearer {own_key}" if own_key else None]
    assert done.stderr.startswith("OUTBOX_API_KEY is not used")


def test_it_is_shown_to_the_service_of_the_environment(tmp_path: Path, recorder: Recorder) -> None:
    done = run(tmp_path, OUTBOX_API_KEY="canary", OUTBOX_API_URL=recorder.url)
    assert done.returncode == 0, done.stderr
    assert recorder.shown == ["Bearer canary"]
