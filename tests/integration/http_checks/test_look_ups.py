"""A slow name server delays the group that chose the name, and no other."""

from __future__ import annotations

import asyncio

import pytest

from outbox.checks.answer import Outcome
from outbox.http_checks.endpoint import HttpCheckEndpoint
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.http_checks.fixtures_name_server import hanging_names
from tests.integration.http_checks.fixtures_questions import ask

CALLS = 100
"""More than every pool of threads."""


async def test_a_group_without_a_name_server_delays_no_other_group(
    endpoint: HttpCheckEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Producer(says("COMMIT")) as producer:
        with hanging_names(monkeypatch) as asked:
            url = "http://a.hangs:8099/check"
            calls = [ask(endpoint, url, check_timeout_seconds=300) for _ in range(CALLS)]
            hanging = asyncio.gather(*calls)
            assert await asyncio.to_thread(asked.first.wait, 60)
            url = producer.url.replace("127.0.0.1", "localhost")
            answer = await ask(endpoint, url, check_timeout_seconds=10)
        late = await hanging
    assert answer.outcome is Outcome.COMMIT
    assert {each.outcome for each in late} == {Outcome.UNREACHABLE}
