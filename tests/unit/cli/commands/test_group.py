"""`outbox group test` fails unless the endpoint accepts our checks and refuses forged ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode

PASSED = {
    "reachable": True,
    "signature_accepted": True,
    "forgery_refused": True,
    "outcome": "unknown",
    "latency_ms": 3,
}


@contextmanager
def api_that_found(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Serve an API whose probe of any group found this; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps(verdict).encode()
            self.send_response(200 if self.path == "/v1/producer-groups/billing/test" else 404)
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


@pytest.mark.parametrize(
    ("failed", "code"),
    [
        (None, ExitCode.OK),
        ("reachable", ExitCode.ERROR),
        ("signature_accepted", ExitCode.ERROR),
        ("forgery_refused", ExitCode.ERROR),
    ],
)
def test_a_probe_of_an_endpoint_that_accepts_forgeries_or_refuses_checks_fails(
    failed: str | None, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = PASSED if failed is None else PASSED | {failed: False}
    with api_that_found(verdict) as url:
        assert run(["--url", url, "-o", "json", "group", "test", "billing"]) == code
    assert json.loads(capsys.readouterr().out) == verdict


def test_an_endpoint_that_does_not_answer_is_said_to_have_accepted_or_refused_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    dead = dict.fromkeys(PASSED, False) | {"outcome": "unreachable", "latency_ms": 3}
    with api_that_found(dead) as url:
        assert run(["--url", url, "-o", "table", "group", "test", "billing"]) == ExitCode.ERROR
    assert capsys.readouterr().out.split() == ["reachable", "no", "outcome", "unreachable"]
