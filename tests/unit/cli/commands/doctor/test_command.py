"""The table of the doctor names the next command; tests/e2e/command/test_command.py runs it."""

from __future__ import annotations

import pytest

from cli.commands.doctor.command import with_command
from outbox.operators.health_check import health_check


@pytest.mark.parametrize(
    ("detail", "command", "shown"),
    [
        ("at 0027", "outbox migrate up", "at 0027; next: outbox migrate up"),
        ("it hangs", "kafka-a.sh b", "it hangs; with Kafka's tools: kafka-a.sh b"),
        ("3: outbox held list", "outbox held list", "3: outbox held list"),
        ("away", None, "away"),
    ],
)
def test_what_is_wrong_comes_with_the_next_command_once(
    detail: str, command: str | None, shown: str
) -> None:
    assert with_command(health_check("it", False, detail, command=command)) == shown


def test_what_is_good_needs_no_command() -> None:
    assert with_command(health_check("it", True, "fine", command="outbox migrate up")) == "fine"
