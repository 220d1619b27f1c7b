"""What `outbox reconcile show` says to people."""

from __future__ import annotations

from typing import Any

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_http_server import QuietHandler, http_server

FINDINGS: list[dict[str, Any]] = [
    {
        "finding_id": f"f{number}",
        "class": "LOST",
        "detail": name,
        "severity": "critical",
        "status": "open",
        "topic": "points",
        "message_id": None,
        "meaning": f"{name} means this",
        "action": "Do that.",
        "command": f"outbox message show f{number}",
    }
    for number, name in enumerate(["published", "published", "skipped", "parked"])
]


def test_each_cause_of_a_run_comes_with_its_meaning_and_the_way_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Handler(QuietHandler):
        def serve(self) -> None:
            page = {"data": FINDINGS[:3], "has_more": False, "next_cursor": None}
            shown = page if "discrepancies" in self.path else {"findings": FINDINGS}
            self.answer_json(shown, 200)

    with http_server(Handler) as url:
        assert run(["--url", url, "-o", "table", "reconcile", "show", "RUN"]) == ExitCode.OK
        said = capsys.readouterr().err
        assert run(["--url", url, "-o", "json", "reconcile", "show", "RUN"]) == ExitCode.OK
    assert said.splitlines() == [
        "LOST/published: published means this. Do that. Next: outbox message show f0",
        "LOST/skipped: skipped means this. Do that. Next: outbox message show f2",
    ]
    assert capsys.readouterr().err == ""
