"""A slow name server delays the group that chose the name, and no other."""

from __future__ import annotations

import asyncio

import pytest

from outbox.checks.check_round import Answer, Outcome
from outbox.http_checks.endpoint import HttpCheckEndpoint
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.http_checks.fixtures_name_server import hanging_names
from tests.integration.http_checks.fixtures_questions import ask

CALLS = 100
"""More than every limit of look-ups."""


async def asked_all(sender: HttpCheckEndpoint, *hosts: str, seconds: int = 1) -> list[Answer]:
    """Ask the hosts of one group at once."""
    calls = (
        ask(sender, f"http://{host}:8099/check", id=1, check_timeout_seconds=seconds)
        for host in hosts
    )
    return await asyncio.gather(*calls)


async def test_a_group_without_a_name_server_delays_no_other_group(
    endpoint: HttpCheckEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Producer(says("COMMIT")) as producer:
        with hanging_names(monkeypatch) as asked:
            hanging = asyncio.create_task(asked_all(endpoint, *["a.hangs"] * CALLS, seconds=300))
            assert await asyncio.to_thread(asked.first.wait, 60)
            url = producer.url.replace("127.0.0.1", "localhost")
            answer = await ask(endpoint, url, id=2, check_timeout_seconds=10)
        late = await hanging
    assert answer.outcome is Outcome.COMMIT
    assert {each.outcome for each in late} == {Outcome.UNREACHABLE}


async def test_the_calls_of_a_group_share_one_look_up_also_after_they_gave_up(
    endpoint: HttpCheckEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with hanging_names(monkeypatch) as asked:
        for _ in range(2):
            await asked_all(endpoint, *["a.hangs"] * CALLS)
        assert asked.names == ["a.hangs"]


async def test_a_group_has_one_look_up_at_a_time_whatever_its_name_was_before(
    endpoint: HttpCheckEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with hanging_names(monkeypatch) as asked:
        answers = await asked_all(endpoint, "a.hangs", "b.hangs")
        fresh = await ask(endpoint, "http://other.hangs:8099/check", id=2)
    assert [each.outcome for each in answers] == [Outcome.TIMEOUT, Outcome.UNREACHABLE]
    assert (fresh.outcome, asked.names) == (Outcome.TIMEOUT, ["a.hangs", "other.hangs"])
