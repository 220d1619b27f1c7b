"""What `outbox dev` refuses before it starts anything."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cli.__main__ import run as outbox
from cli.dev.command import addresses
from cli.invocation.dev_state import DevState
from cli.invocation.exit_codes import ExitCode


def test_the_demo_without_the_producers_library_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "outbox_client", None)
    data = tmp_path / "data"
    assert outbox(["dev", "--demo", "--data-dir", str(data)]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "outbox: the demo plays a producer: install outbox-client too, or omit --demo"
    assert not data.exists()


def test_who_asks_for_keys_is_told_where_the_first_one_is_and_not_shown_it() -> None:
    facts = DevState(
        api_url="http://127.0.0.1:1",
        kafka_bootstrap_servers="127.0.0.1:2",
        database_url="postgresql://u:canary@127.0.0.1:3/d",
        pids={},
        api_key=None,
        version="1",
    )
    assert "API key" not in addresses(facts, Path("data"))
    shown = addresses(replace(facts, api_key="obx2_canary"), Path("data"))
    assert shown["API key"] == "api_key in data/dev.json"
    assert "canary" not in str(shown)
