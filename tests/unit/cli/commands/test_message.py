"""What `outbox message` asks of the API, and shows to people."""

from __future__ import annotations

import json

import pytest

from cli.invocation.exit_codes import ExitCode
from tests.unit.cli.fixtures_api import api_that_answers

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


def test_a_history_shows_the_http_status_of_a_check_and_times_to_the_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    with api_that_answers(HISTORY) as api:
        assert api.run("-o", "table", "message", "show", ID, "--history") == ExitCode.OK
    assert api.asked == [(f"GET /v1/half-messages/{ID}/history", None)]
    head, prepared, checked = capsys.readouterr().out.splitlines()
    assert "http status" in head
    assert prepared.split()[:3] == ["1", "2026-09-21T14:13:26Z", "prepared"]
    assert checked.split()[2:] == ["check", "-", "-", "http_error", "503", "-", "-", "-"]


def test_several_messages_are_one_bulk_action_whose_failures_fail_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = {"id": 7, "status": "finished", "done": 2, "failed": 1, "failures": []}
    words = ["message", "recheck", "first", "second", "third", "--reason", "endpoint is back"]
    with api_that_answers(done, 202) as api:
        assert api.run("-o", "json", *words) == ExitCode.CONFLICT
    shown = capsys.readouterr()
    assert api.asked[0][1]["filter"] == {"message_ids": ["first", "second", "third"]}
    assert json.loads(shown.out) == done
    assert "1 not done" in shown.err


@pytest.mark.parametrize(
    ("option", "member"),
    [("group", "producer_group"), ("transaction-id", "transaction_id")],
)
def test_a_filter_is_named_as_the_option_of_the_list_or_as_in_the_api(
    option: str, member: str
) -> None:
    words = ["message", "recheck", "--filter", f"{option}=x", "--reason", "r", "--dry-run"]
    with api_that_answers({"matched": 0, "more": False, "sample": []}) as api:
        assert api.run(*words) == ExitCode.OK
    assert [body["filter"] for _, body in api.asked] == [{member: "x"}]


@pytest.mark.parametrize("action", [("recheck",), ("force-end", "--decision", "COMMIT")])
def test_a_dry_run_of_named_messages_does_nothing_to_them(action: tuple[str, ...]) -> None:
    with api_that_answers({"matched": 1, "more": False, "sample": [ID]}) as api:
        assert api.run("message", *action, ID, "--reason", "r", "--dry-run") == ExitCode.OK
    [(asked, body)] = api.asked
    assert (asked, body["dry_run"]) == ("POST /v1/bulk-actions", True)
    assert body["filter"] == {"message_ids": [ID]}
