"""What `outbox key` says about a key that it cannot revoke."""

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
