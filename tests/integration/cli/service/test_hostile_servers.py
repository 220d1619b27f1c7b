"""A server that is no outbox, or no server: bounded in time, one line, the right exit code."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from cli.service.limited_http import ANSWER_MAX_BYTES
from tests.integration.fixtures_tcp_server import tcp_server

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
DROPS_MAX = 200
DROP_SECONDS = 0.05
HTML = b"<!doctype html><p>gateway"


@contextmanager
def server(first: bytes, drop: bytes = b"", pause: float = DROP_SECONDS) -> Iterator[str]:
    """Answer each connection with bytes, then with drops; reset it at the end; yield the URL."""
    over = Event()

    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(first)
        for _ in range(DROPS_MAX if drop else 0):
            connection.sendall(drop)
            if over.wait(pause):
                return

    with tcp_server(answer) as url:
        try:
            yield url
        finally:
            over.set()


def whole(status: str, body: bytes, *headers: str) -> bytes:
    """Return a complete answer."""
    head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


@pytest.mark.parametrize(
    ("first", "drop"),
    [(b"", INTERIM), (b"HTTP/1.1 200 OK\r\n", b"a"), (OK + b"\r\n", b" ")],
    ids=["interim answers", "a header", "a body"],
)
def test_an_answer_that_drips_is_given_up_in_time(
    first: bytes, drop: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(first, drop) as url:
        code = run(["--url", url, "--timeout", "0.5", "group", "list"])
    said = capsys.readouterr().err
    assert (code, said) == (ExitCode.UNREACHABLE, f"outbox: no answer from {url} in time\n")


@pytest.mark.parametrize(
    ("first", "drop", "code", "said"),
    [
        (OK + b"content-length: 9\r\n\r\n{", b"", ExitCode.UNREACHABLE, "cannot reach"),
        (b"SSH-2.0-OpenSSH\x1b[31m\r\n", b"", ExitCode.UNREACHABLE, "cannot reach"),
        (b"", b"HTTP" * 99_999, ExitCode.UNREACHABLE, "cannot reach"),
        (whole("200 OK", HTML), b"", ExitCode.USAGE, "is not the API of an outbox"),
        (whole("200 OK", b'{"a":' * 9_999), b"", ExitCode.USAGE, "is not the API of an outbox"),
        (whole("200 OK", b"[1]"), b"", ExitCode.USAGE, "is not the API of an outbox"),
        (whole("200 OK", b'{"ok": true}'), b"", ExitCode.USAGE, "the answer has no 'data'"),
        (whole("404 Not Found", HTML), b"", ExitCode.USAGE, "answers 404 and is not the API"),
        (whole("502 Bad Gateway", HTML), b"", ExitCode.UNREACHABLE, "answers 502, but not as"),
        (whole("401 No", HTML), b"", ExitCode.REFUSED, "answers 401, but not as"),
        (whole("302 Found", b"", "location: /"), b"", ExitCode.USAGE, "answers 302 and is not"),
        (OK + b"\r\n", b" " * (ANSWER_MAX_BYTES // 99), ExitCode.UNREACHABLE, "more than"),
    ],
)
def test_an_answer_of_another_server_is_one_line(
    first: bytes, drop: bytes, code: ExitCode, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(first, drop, pause=0) as url:
        assert run(["--url", url, "group", "list"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert (shown.err.count("\n"), "\x1b" in shown.err, len(shown.err) < 400) == (1, False, True)


def test_a_problem_without_a_terminal_is_still_the_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem = {"code": "message-not-found", "title": "no", "status": 404}
    with server(whole("404 Not Found", json.dumps(problem).encode())) as url:
        assert run(["--url", url, "message", "get", "x"]) == ExitCode.NOT_FOUND
    assert json.loads(capsys.readouterr().err) == problem


@pytest.mark.parametrize("words", [["message", "get"], ["message", "list", "--topic"]])
def test_a_value_that_is_no_text_is_a_usage_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--url", "http://127.0.0.1:1", *words, "\udcff"]) == ExitCode.USAGE
    assert "is no UTF-8 text" in capsys.readouterr().err
