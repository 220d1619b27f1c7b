"""What `outbox dev` shows of its addresses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cli.dev.command import addresses
from cli.invocation.dev_state import DevState


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
    shown = addresses(replace(facts, api_key="obx_canary"), Path("data"))
    assert shown["API key"] == "api_key in data/dev.json"
    assert "canary" not in str(shown)
