"""What `outbox message` shows to people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_http_server import QuietHandler, http_server

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

    class Handler(QuietHandler):
        def serve(self) -> None:
            known = (self.command, self.path) == ("GET", f"/v1/half-messages/{ID}/history")
            self.answer_json(HISTORY, 200 if known else 404)

    with http_server(Handler) as url:
        yield url


def test_a_history_shows_the_http_status_of_a_check_and_times_to_the_second(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = ["--url", url, "-o", "table", "message", "show", ID, "--history"]
    assert run(shown) == ExitCode.OK
    head, prepared, checked = capsys.readouterr().out.splitlines()
    assert "http status" in head
    assert prepared.split()[:3] == ["1", "2026-09-21T14:13:26Z", "prepared"]
    assert checked.split()[2:] == ["check", "-", "-", "http_error", "503", "-", "-", "-"]


def test_several_messages_are_one_bulk_action_whose_failures_fail_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []
    done = {"id": 7, "status": "finished", "done": 2, "failed": 1, "failures": []}

    class Handler(QuietHandler):
        def serve(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.answer_json(done, 202)

    words = ["message", "recheck", "first", "second", "third", "--reason", "endpoint is back"]
    with http_server(Handler) as url:
        assert run(["--url", url, "-o", "json", *words]) == ExitCode.CONFLICT
    shown = capsys.readouterr()
    assert asked[0]["filter"] == {"message_ids": ["first", "second", "third"]}
    assert json.loads(shown.out) == done
    assert "1 not done" in shown.err


@pytest.mark.parametrize(
    ("option", "member"),
    [
        ("group", "producer_group"),
        ("transaction-id", "transaction_id"),
    ],
)
def test_a_filter_is_named_as_the_option_of_the_list_or_as_in_the_api(
    option: str, member: str
) -> None:
    asked: list[Any] = []

    class Handler(QuietHandler):
        def serve(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.answer_json({"matched": 0, "more": False, "sample": []}, 200)

    with http_server(Handler) as url:
        words = ["--url", url, "message", "recheck", "--filter", f"{option}=x", "--reason", "r"]
        assert run([*words, "--dry-run"]) == ExitCode.OK
    assert [each["filter"] for each in asked] == [{member: "x"}]


@pytest.mark.parametrize("action", [("recheck",), ("force-end", "--decision", "COMMIT")])
def test_a_dry_run_of_named_messages_does_nothing_to_them(
    action: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, Any]] = []

    class Handler(QuietHandler):
        def serve(self) -> None:
            length = int(self.headers["content-length"])
            asked.append((self.path, json.loads(self.rfile.read(length))))
            self.answer_json({"matched": 1, "more": False, "sample": [ID]}, 200)

    with http_server(Handler) as url:
        words = ["--url", url, "-o", "json", "message", *action, ID, "--reason", "r", "--dry-run"]
        assert run(words) == ExitCode.OK
    [(path, body)] = asked
    assert (path, body["dry_run"]) == ("/v1/bulk-actions", True)
    assert body["filter"] == {"message_ids": [ID]}
    assert json.loads(capsys.readouterr().out)["matched"] == 1
