"""What `outbox key` says about a key that it cannot revoke."""

from __future__ import annotations

import pytest

from cli.invocation.exit_codes import ExitCode
from tests.unit.cli.fixtures_api import api_that_answers

NOTHING = {"status": 404, "code": "not-found", "title": "Nothing"}


@pytest.mark.parametrize("key_id", ["1a2b", "a?b=c"])
def test_an_unknown_key_is_said_to_be_unknown(
    key_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it looks like, it is one part of the path."""
    with api_that_answers(NOTHING, 404) as api:
        assert api.run("-o", "table", "key", "revoke", key_id) == ExitCode.NOT_FOUND
    assert "outbox key list" in capsys.readouterr().err
    assert [asked.rpartition("/")[0] for asked, _ in api.asked] == ["DELETE /v1/api-keys"]
