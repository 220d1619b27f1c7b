"""The checker as a process: it is on time, alive, and ends on a signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from outbox.messages.message import State
from outbox.postgres.checks.keyring import key_ring
from outbox.telemetry.version import installed_version
from tests.fixtures_frozen import frozen_postgres
from tests.integration.checker.fixtures_checker_process import running_checker
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says

pytestmark = pytest.mark.postgres

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
SEALED = key_ring(None, insecure=True).seal(SECRET, "account")


async def until(look: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Return once ``look`` is true; fail when that takes too long."""
    never = asyncio.Event()
    async with asyncio.timeout(seconds):
        while not await look():
            try:
                await asyncio.wait_for(never.wait(), 0.05)
            except TimeoutError:
                continue


async def has_beaten(world: World) -> bool:
    """Return whether each task has beaten of late; a former life's heartbeats are days old."""
    rows = await world.rows(
        "SELECT name FROM outbox.progress WHERE name LIKE 'heartbeat:%%'"
        " AND updated_at > clock_timestamp() - interval '1 hour'"
    )
    return {"heartbeat:check", "heartbeat:sweep", "heartbeat:leaves"} <= {row[0] for row in rows}


async def test_a19_the_check_comes_when_the_immunity_ends_and_commits(
    world: World, database_url: str
) -> None:
    async with Producer(says("COMMIT")) as producer, running_checker(database_url) as checker:
        group = await world.group(producer.url, secret=SEALED)
        await until(lambda: has_beaten(world))
        halves = await world.prepare(group, 20, check_immunity_seconds=3)

        async def all_committed() -> bool:
            return set(await world.states(halves)) == {State.COMMITTED}

        await until(all_committed)
        code, _ = await checker.stop(signal.SIGINT)
    assert code == 130
    waited = await world.rows(
        "SELECT extract(epoch FROM a.asked_at - h.prepared_at)::float8"
        " FROM outbox.check_attempt a JOIN outbox.half_message h USING (half_id)"
    )
    assert len(waited) == 20
    assert min(waited)[0] >= 3.0
    assert max(waited)[0] <= 30.0, "a round at an interval, as RocketMQ's, comes up to 60 s late"
    assert producer.headers[0]["webhook-signature"].startswith("v1,")


async def test_sigterm_ends_it_cleanly_and_metrics_are_served_before(
    world: World, database_url: str
) -> None:
    async with running_checker(database_url) as checker:
        await until(lambda: has_beaten(world))
        async with aiohttp.ClientSession() as session, session.get(checker.metrics_url) as page:
            metrics = await page.text()
        async with asyncio.timeout(60):
            code, said = await checker.stop()
    assert code == 0
    assert 'outbox_checker_heartbeat_timestamp_seconds{task="check"}' in metrics
    assert 'outbox_default_leaf_rows{table="half_message"} 0.0' in metrics
    assert f'outbox_build_info{{version="{installed_version()}"}} 1.0' in metrics
    assert "Traceback" not in said
    assert '"event": "stopped"' in said


@pytest.mark.deep
async def test_sigterm_ends_it_cleanly_while_postgresql_is_stopped(
    world: World, database_url: str
) -> None:
    async with running_checker(database_url) as checker:
        await until(lambda: has_beaten(world))
        with frozen_postgres(database_url):
            code, said = await checker.stop()
    assert code == 0
    assert "Traceback" not in said
    assert '"event": "stopped"' in said


async def killed_before_commit(database_url: str) -> None:
    async with running_checker(database_url, failpoints="checker.before_commit=kill") as dying:
        await dying.process.wait()


async def test_a_crash_after_the_answer_asks_the_same_attempt_again(
    world: World, database_url: str
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url, secret=SEALED)
        (half,) = await world.due(group)
        async with asyncio.timeout(120):
            while not producer.asked:  # one that has lived may commit another answer first
                await killed_before_commit(database_url)
        assert await world.states([half]) == [State.PREPARED]
        async with running_checker(database_url):

            async def committed() -> bool:
                return await world.states([half]) == [State.COMMITTED]

            await until(committed)
    assert [check["attempt"] for check in producer.asked] == [1, 1]
    ended = "SELECT count(*) FROM outbox.op_message"
    assert await world.rows(ended) == [(1,)]
