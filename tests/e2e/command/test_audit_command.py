"""`outbox audit`: the same entries as the console's page, by the same filters."""

from __future__ import annotations

import pytest

from cli.invocation.exit_codes import ExitCode
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_command_here import Command
from tests.e2e.fixtures_service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]


@pytest.fixture
def decided(service: Service, outbox: Command) -> tuple[str, str]:
    """Return a group, and a message of it that an operator rolled back."""
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        group = service.group(endpoint.url, transaction_timeout_seconds=600)
    message_id = service.prepare(group, service.new_topic())
    reason = ("--reason", "=never paid", "--operator", "Ada")
    ended = outbox("message", "force-end", message_id, "--decision", "ROLLBACK", *reason)
    assert ended.code == ExitCode.OK, ended.err
    assert outbox("group", "pause", group, "--reason", "maintenance").code == ExitCode.OK
    return group, message_id


def test_the_audit_log_is_listed_by_each_filter_of_the_console(
    outbox: Command, decided: tuple[str, str]
) -> None:
    group, message_id = decided
    entries = outbox("audit", "list", "--group", group).json()["data"]
    assert [each["action"] for each in entries] == ["group.pause", "message.force_end", "group.put"]
    [ended] = outbox("audit", "list", "--message-id", message_id).json()["data"]
    assert (ended["operator"], ended["reason"]) == ("Ada", "=never paid")
    for name, value in {
        "--operator": "Ada",
        "--action": "message.force_end",
        "--producer-group": group,
        "--at-from": ended["at"],
    }.items():
        found = outbox("audit", "list", name, value, "--message-id", message_id).json()["data"]
        assert found == [ended], name
    before = outbox("audit", "list", "--at-to", ended["at"], "--message-id", message_id)
    assert before.json()["data"] == []
    assert outbox("audit", "list", "--at-from", "yesterday").code == ExitCode.USAGE
