"""What `outbox key` says about a key that it cannot revoke, and about groups of a new one."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_http_server import QuietHandler, http_server


@pytest.mark.parametrize("key_id", ["1a2b", "a?b=c"])
def test_an_unknown_key_is_said_to_be_unknown(
    key_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it looks like, it is one part of the path."""
    asked: list[str] = []

    class Handler(QuietHandler):
        def serve(self) -> None:
            asked.append(self.path)
            self.answer_json({"status": 404, "code": "not-found", "title": "Nothing"}, 404)

    with http_server(Handler) as url:
        code = run(["--url", url, "-o", "table", "key", "revoke", key_id])
    assert code == ExitCode.NOT_FOUND
    assert "outbox key list" in capsys.readouterr().err
    assert [path.rpartition("/")[0] for path in asked] == ["/v1/api-keys"]


def create_for(group: str, status: int, problem: dict[str, str]) -> None:
    """Create a key for a group; the API answers so when it is asked for the group."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            if self.path == "/v1/api-keys":
                self.answer_json({"key_id": "1", "api_key": "obx_1_secret"}, 201)
            else:
                self.answer_json(problem, status)

    words = ["key", "create", "--name", "app", "--scope", "messages:write", "--group", group]
    with http_server(Handler) as url:
        assert run(["--url", url, "-o", "table", *words]) == ExitCode.OK


@pytest.mark.parametrize(("group", "status"), [("billing", 404), ("orders", 200), ("*", 404)])
def test_a_key_for_a_group_that_is_not_registered_names_the_next_command(
    group: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key is created all the same: a group may be registered after its key."""
    create_for(group, status, {"code": "unknown-group", "title": "None"})
    shown = capsys.readouterr()
    assert shown.out.endswith("obx_1_secret\n")
    named = f"outbox group set {group} --check-url URL" in shown.err
    assert named is (group == "billing")
    assert len(shown.err.splitlines()) == named


def test_a_new_key_is_shown_though_its_groups_cannot_be_looked_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    create_for("billing", 503, {"title": "Away"})
    shown = capsys.readouterr()
    assert "obx_1_secret" in shown.out
    assert shown.err == ""
