"""A wrong address or key is said to be so, without the key; a list is read to its end."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_http_server import QuietHandler, http_server
from tests.unit.cli.fixtures_api import api_that_answers

SITES = [
    (200, b"<!doctype html>", ExitCode.USAGE, "is not the API of an outbox"),
    (200, b'{"ok": true}', ExitCode.USAGE, "the answer has no 'data'"),
    (404, b"<!doctype html>", ExitCode.USAGE, "answers 404 and is not the API"),
    (502, b"<!doctype html>", ExitCode.UNREACHABLE, "answers 502, but not as"),
]


@pytest.mark.parametrize(("status", "body", "code", "said"), SITES)
def test_an_answer_of_another_server_is_one_line(
    status: int, body: bytes, code: ExitCode, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Site(QuietHandler):
        def serve(self) -> None:
            self.answer(body, status, content_type="text/html")

    with http_server(Site) as url:
        assert run(["--url", url, "group", "list"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_server_that_does_not_answer_is_given_up_in_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert run(["--url", url, "--timeout", "0.2", "group", "list"]) == ExitCode.UNREACHABLE
    assert capsys.readouterr().err == f"outbox: no answer from {url} in time\n"


def test_a_key_that_cannot_be_sent_is_named_by_its_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTBOX_API_KEY", "obx_1_secret\nx")
    with api_that_answers({}) as api:
        assert api.run("group", "list") == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "OUTBOX_API_KEY" in said
    assert "obx_1_secret" not in said


@pytest.mark.parametrize("url", ["localhost:8080", "nonsense"])
def test_a_url_without_http_is_a_usage_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--url", url, "group", "list"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert said == f"outbox: {url} is no address of an API: it begins with http:// or https://\n"


@pytest.mark.parametrize(
    "words",
    [
        ("message", "show", ""),
        ("reconcile", "show", ""),
        ("reconcile", "fix", ""),
    ],
    ids=" ".join,
)
def test_an_empty_id_is_a_usage_error_and_nothing_is_asked(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable that is not set in a script gives one. No server listens at the URL."""
    assert run(["--url", "http://127.0.0.1:1", *words]) == ExitCode.USAGE
    assert capsys.readouterr().err == "outbox: the id or name is empty\n"


@pytest.mark.parametrize("name", ["a/b", ".."])
def test_a_name_with_a_slash_is_a_usage_error_and_nothing_is_asked(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API would find nothing at such a path, and the command blamed its version."""
    assert run(["--url", "http://127.0.0.1:1", "group", "show", name]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"outbox: {name!r} is no id and no name\n"


PAGES = {None: ("alpha", "more"), "more": ("omega", None)}


@pytest.fixture
def url() -> Iterator[str]:
    """Serve a list of groups of two pages; yield the URL of the API."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            [cursor] = parse_qs(urlsplit(self.path).query).get("cursor", [None])
            name, following = PAGES[cursor]
            page = {"data": [{"producer_group": name}], "next_cursor": following}
            self.answer_json({**page, "has_more": following is not None})

    with http_server(Handler) as url:
        yield url


@pytest.mark.parametrize("form", ["table", "json"])
def test_every_page_is_shown(url: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--url", url, "-o", form, "group", "list"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.index("alpha") < shown.index("omega")
    assert form != "json" or json.loads(shown)["has_more"] is False
