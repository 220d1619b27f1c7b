"""A key that the service refuses: each command says what to do next, with one exit code for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from outbox.access import Scope
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import PEPPER, WITH_KEYS, token
from tests.integration.api.fixtures_service import HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import listening

pytestmark = pytest.mark.postgres

COMMANDS: Final = (
    "message list",
    "message show MESSAGE",
    "message show MESSAGE --history",
    "message end MESSAGE --decision COMMIT",
    "message recheck MESSAGE --reason r",
    "message force-end MESSAGE --decision COMMIT --reason r",
    "message recheck --filter group=billing --reason r --dry-run",
    "group list",
    "group show billing",
    "group set billing --check-max 3",
    "group set billing --check-url http://127.0.0.1:8999/check",
    "group test billing",
    "group pause billing --reason r",
    "group resume billing --reason r",
    "group rotate-secret billing",
    "key create --name n --scope admin --group *",
    "key list",
    "key revoke KEY",
    "reconcile list",
    "reconcile show RUN",
    "reconcile fix RUN",
    "audit list",
    "bench --group billing --topic invoices.issued --messages 2",
)
ABOUT_THE_GROUP: Final = tuple(
    each for each in COMMANDS if each.startswith(("message show", "message end", "message force"))
) + tuple(each for each in COMMANDS if each.startswith("group ") and "billing" in each)


@dataclass(frozen=True)
class Guarded:
    """A service that asks for keys, with one message of the group billing."""

    pool: Pool
    message_id: str
    say: Callable[[str, str | None], Awaitable[tuple[int, str]]]
    """Runs a command with a key; returns its exit code and what it said on stderr."""


@pytest.fixture
async def service(
    database_url: str,
    pool: Pool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> AsyncIterator[Guarded]:

    async def say(words: str, key: str | None) -> tuple[int, str]:
        if key is not None:
            monkeypatch.setenv("OUTBOX_API_KEY", key)
        named = {"MESSAGE": message_id, "KEY": "0" * 16, "RUN": "nothing"}
        arguments = [named.get(word, word) for word in words.split()]
        code = await asyncio.to_thread(run, ["-o", "table", *arguments])
        return code, capsys.readouterr().err

    headers = await token(pool, Scope.ADMIN)
    async with listening(settings_for(database_url, **WITH_KEYS), headers=headers) as api:
        await api.put_group("billing")
        prepared = await api.client.post(HALVES, json=prepare_body())
        message_id = prepared.json()["message_id"]
        monkeypatch.setenv("OUTBOX_API_URL", str(api.client.base_url).rstrip("/"))
        yield Guarded(pool, message_id, say)


async def key_of(pool: Pool, *scopes: Scope, group: str = "*") -> str:
    """Create a key; return its text."""
    header = await token(pool, *scopes, groups=(group,))
    return header["Authorization"].removeprefix("Bearer ")


async def revoked_key(pool: Pool) -> str:
    """Return a key that the service no longer accepts; all that it refuses get one answer."""
    key = await key_of(pool, Scope.ADMIN)
    await PostgresApiKeys(pool, PEPPER.encode()).revoke(key.split("_")[1], None, None)
    return key


@pytest.mark.parametrize("revoked", [False, True])
async def test_without_a_valid_key_every_command_names_the_variable_that_holds_one(
    revoked: bool, service: Guarded
) -> None:
    key = await revoked_key(service.pool) if revoked else None
    for words in COMMANDS:
        code, said = await service.say(words, key)
        assert (words, code) == (words, ExitCode.REFUSED)
        assert "OUTBOX_API_KEY" in said, words
        assert "outbox key create" in said, words
        assert not [each for each in ("Bearer", "(secret)", "/v1/") if each in said], said
        assert key is None or key not in said


async def test_a_key_of_another_group_is_told_where_it_sees_what_there_is(
    service: Guarded,
) -> None:
    scopes = set(Scope) - {Scope.ADMIN}
    key = await key_of(service.pool, *scopes, group="orders")
    for words in ABOUT_THE_GROUP:
        code, said = await service.say(words, key)
        assert (words, code) == (words, ExitCode.NOT_FOUND), said
        assert "of another group" in said, words
        assert "`outbox message list`" in said or "`outbox group list`" in said, words


async def test_a_key_without_the_scope_is_told_its_name(service: Guarded) -> None:
    key = await key_of(service.pool, Scope.MESSAGES_WRITE)
    for words in COMMANDS:
        code, said = await service.say(words, key)
        assert (words, code) == (words, ExitCode.REFUSED)
        assert "the key needs " in said, words
