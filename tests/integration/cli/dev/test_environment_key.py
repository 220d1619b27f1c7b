"""The key of the environment is for the service of the environment, never for one of a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cli.invocation.dev_state import DevState, write_state
from outbox.settings.environment import process_environment

OUTBOX = Path(sys.executable).with_name("outbox")


class Recorder(ThreadingHTTPServer):
    """Answers every request with an empty list, and keeps the keys it was shown."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.shown: list[str | None] = []

    @property
    def url(self) -> str:
        """The address of this server."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        self.server.shown.append(self.headers["authorization"])
        body = b'{"data":[],"next_cursor":null,"has_more":false}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Run the server for the test."""
    with Recorder() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `outbox key list` in a folder."""
    inherited = process_environment().items()
    clean = {name: text for name, text in inherited if not name.startswith("OUTBOX_")}
    return subprocess.run(
        [OUTBOX, "key", "list"],
        cwd=folder,
        env={**clean, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("own_key", [None, "obx2_of_the_folder"])
def test_the_key_of_the_environment_is_not_shown_to_an_address_from_a_folder(
    tmp_path: Path, recorder: Recorder, own_key: str | None
) -> None:
    (tmp_path / ".outbox-dev").mkdir()
    state = DevState(
        api_url=recorder.url,
        kafka_bootstrap_servers="127.0.0.1:9092",
        database_url="postgresql://127.0.0.1:5432/outbox",
        pids={"api": os.getpid()},
        api_key=own_key,
        version="0",
    )
    write_state(tmp_path / ".outbox-dev", state)
    done = run(tmp_path, OUTBOX_API_KEY="canary")
    assert done.returncode == 0, done.stderr
    assert recorder.shown == [f"Bearer {own_key}" if own_key else None]


def test_it_is_shown_to_the_service_of_the_environment(tmp_path: Path, recorder: Recorder) -> None:
    done = run(tmp_path, OUTBOX_API_KEY="canary", OUTBOX_API_URL=recorder.url)
    assert done.returncode == 0, done.stderr
    assert recorder.shown == ["Bearer canary"]


def test_a_file_that_others_can_write_is_named_and_nothing_is_sent(
    tmp_path: Path, recorder: Recorder
) -> None:
    (tmp_path / ".outbox-dev").mkdir()
    state = DevState(
        api_url=recorder.url,
        kafka_bootstrap_servers="127.0.0.1:9092",
        database_url="postgresql://127.0.0.1:5432/outbox",
        pids={"api": os.getpid()},
        api_key=None,
        version="0",
    )
    write_state(tmp_path / ".outbox-dev", state)
    (tmp_path / ".outbox-dev" / "dev.json").chmod(0o666)
    done = run(tmp_path, OUTBOX_API_KEY="canary")
    assert done.returncode == 2
    assert "others can write it" in done.stderr
    assert "Traceback" not in done.stderr
    assert recorder.shown == []
