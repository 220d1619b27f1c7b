"""`outbox key create --database` makes a key under the rules of the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.stores.bootstrap_key import create_in_database
from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import PEPPER, guarded, token
from tests.integration.api.fixtures_rows import select

pytestmark = pytest.mark.postgres

STORED = "SELECT count(*) FROM outbox.api_key"
REACH = "SELECT producer_groups FROM outbox.api_key WHERE name = %s"
LONGEST = "n" * 128
REFUSED: dict[str, tuple[str, Sequence[str]]] = {
    "no name": ("", ["billing"]),
    "a comma": ("n", ["billing,orders"]),
    "too many groups": ("n", [f"group-{n}" for n in range(1001)]),
}
"""Name and groups that no key may have."""


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", database_url)
    monkeypatch.setenv("OUTBOX_AUTH_PEPPER", PEPPER)


def create(name: str, groups: Sequence[str]) -> int:
    """Run the command."""
    named = [f"--group={group}" for group in groups]
    return run(["key", "create", "--database", f"--name={name}", "--scope=messages:read", *named])


async def test_a_key_of_a_host_whose_clock_is_behind_is_refused_by_the_clock_of_postgresql(
    pool: Pool,
) -> None:
    ends = SystemClock().now() - timedelta(seconds=1)
    with pytest.raises(CommandFailed, match="PostgreSQL's clock"):
        await asyncio.to_thread(create_in_database, "n", [Scope.MESSAGES_READ], ["*"], ends)
    assert await select(pool, STORED) == [(0,)]


@pytest.mark.parametrize("case", REFUSED)
async def test_what_the_api_refuses_is_refused(
    case: str, pool: Pool, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, groups = REFUSED[case]
    before = await select(pool, STORED)
    code = await asyncio.to_thread(create, name, groups)
    lines = capsys.readouterr().err.splitlines()
    assert (code, len(lines)) == (ExitCode.USAGE, 1), lines
    body = json.dumps({"name": name, "producer_groups": groups, "scopes": ["messages:read"]})
    async with guarded(database_url) as service:
        headers = {"Content-Type": "application/json", **await token(pool, Scope.ADMIN)}
        answer = await service.client.post("/v1/api-keys", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert await select(pool, STORED) == [(before[0][0] + 1,)], "the key of the administrator"


async def test_the_longest_name_is_taken_and_a_group_that_is_named_twice_is_one(
    pool: Pool,
) -> None:
    groups = ["g" * 128, "billing", "*", "billing"]
    assert await asyncio.to_thread(create, LONGEST, groups) == ExitCode.OK
    assert await select(pool, REACH, LONGEST) == [(groups[:3],)]
