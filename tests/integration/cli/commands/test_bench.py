"""`outbox bench` with the key of a tenant leaves nothing undecided.

What each mode measures: `tests/e2e/command/test_bench.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import key_text
from tests.integration.api.fixtures_keys import WITH_KEYS, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import GROUP, TOPIC, settings_for
from tests.integration.api.fixtures_sockets import listening

pytestmark = pytest.mark.postgres

ALL = "SELECT count(*) FROM outbox.half_message"
LEFT = "SELECT count(*) FROM outbox.half_message JOIN outbox.op_message USING (half_id)"
PREPARING = (Scope.MESSAGES_WRITE, Scope.MESSAGES_END)


async def test_what_was_prepared_before_a_refusal_is_rolled_back(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = await token(pool, Scope.ADMIN)
    key = await token(pool, *PREPARING, groups=(GROUP,))
    settings = settings_for(database_url, **WITH_KEYS, rate_prepare_per_second=5)
    async with listening(settings, headers=admin) as listener:
        await listener.put_group(GROUP)
        monkeypatch.setenv("OUTBOX_API_URL", f"http://127.0.0.1:{listener.port}")
        monkeypatch.setenv("OUTBOX_API_KEY", key_text(key))
        words = ["bench", "--group", GROUP, "--topic", TOPIC, "--mode", "prepare"]
        words += ["--messages", "40", "--concurrency", "1"]
        assert await asyncio.to_thread(run, words) == ExitCode.UNREACHABLE
    [(prepared,)] = await select(pool, ALL)
    assert 0 < prepared < 40
    assert await select(pool, LEFT) == [(prepared,)]
