"""What `outbox message` shows to people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode

ID = "0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10"
HISTORY = {
    "message_id": ID,
    "events": [
        {"seq": 1, "at": "2026-09-21T14:13:26.123456Z", "type": "prepared", "key_id": None},
        {
            "seq": 2,
            "at": "2026-09-21T14:13:32.654321Z",
            "type": "check",
            "outcome": "http_error",
            "http_status": 503,
            "latency_ms": 7,
        },
    ],
}


@pytest.fixture
def url() -> Iterator[str]:
    """Serve the history of one message; yield the URL of the API."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(HISTORY).encode()
            self.send_response(200 if self.path == f"/v1/half-messages/{ID}/history" else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_history_shows_the_http_status_of_a_check_and_times_to_the_second(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = ["--url", url, "-o", "table", "message", "get", ID, "--history"]
    assert run(shown) == ExitCode.OK
    head, prepared, checked = capsys.readouterr().out.splitlines()
    assert "http status" in head
    assert prepared.split()[:3] == ["1", "2026-09-21T14:13:26Z", "prepared"]
    assert checked.split()[2:] == ["check", "-", "-", "http_error", "503", "-"]
