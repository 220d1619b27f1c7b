"""`outbox bench` measures what it says, and leaves nothing undecided behind."""

from __future__ import annotations

import pytest

from cli.invocation.exit_codes import ExitCode
from tests.e2e.fixtures_command_here import Command
from tests.e2e.fixtures_service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]
CLOSED = "http://127.0.0.1:65001/check"


def states(service: Service, group: str) -> set[str]:
    """Return the states of a group's messages."""
    query = {"producer_group": group, "limit": "500"}
    found = service.http.get("/v1/half-messages", params=query).json()["data"]
    return {message["state"] for message in found}


@pytest.mark.parametrize(
    ("mode", "batch", "left", "records"),
    [
        ("prepare", 1, {"ROLLED_BACK"}, 0),
        ("cycle", 7, {"COMMITTED", "PUBLISHED"}, 20),
        ("relay", 7, {"PUBLISHED"}, 20),
    ],
)
def test_each_mode_sends_exactly_what_was_asked(
    mode: str, batch: int, left: set[str], records: int, outbox: Command, service: Service
) -> None:
    group = service.group(CLOSED, transaction_timeout_seconds=600)
    topic = service.new_topic("bench")
    words = ("--group", group, "--topic", topic, "--mode", mode, "--batch", str(batch))
    ended = outbox("bench", *words, "--messages", "20", "--concurrency", "4", "--size", "9")
    assert ended.code == ExitCode.OK, ended.err
    measured = ended.json()
    assert measured["messages_per_second"] > 0
    assert 0 < measured["p50_ms"] <= measured["p95_ms"] <= measured["p99_ms"]
    asked = {"mode": mode, "batch": batch, "messages": 20, "concurrency": 4, "size": 9}
    assert asked.items() <= measured.items()
    assert measured["version"]
    assert "20 of 20 messages" in ended.err
    assert states(service, group) <= left
    if mode == "relay":
        found = service.records(topic)
        assert [record.value for record in found] == [b"x" * 9] * records
