"""Nothing is acknowledged when a wait for the synchronous standby is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import LiteralString

import httpx2
import psycopg
import pytest

from api import wiring
from chaos.servers.nodes import PostgresNode
from chaos.servers.server_thread import ServerThread
from chaos.servers.standby import PrimaryAndStandby
from tests.fixtures_databases import migrate
from tests.fixtures_waiting import wait_for
from tests.integration.api.fixtures_service import GROUP, HALVES, Service, running, settings_for

pytestmark = pytest.mark.postgres

END_WAITS = "SELECT {function}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
REPLICAS = "SELECT count(*) FROM pg_stat_replication"
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
Ask = Callable[[], Awaitable[httpx2.Response]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrimaryAndStandby]:
    """Yield a primary with a synchronous standby."""
    home, keeper = tmp_path_factory.mktemp("pair"), ServerThread()
    primary = PostgresNode(home / "primary", keeper)
    made = PrimaryAndStandby(primary, home / "standby", keeper)
    try:
        primary.start()
        primary.make_database()
        migrate(primary.dsn())
        show_errors_alone(primary)
        made.follow()
        made.make_synchronous()
        yield made
    finally:
        for node in (made.primary, made.standby):
            node.server.kill()
            node.server.erase()
        keeper.close()


def show_errors_alone(primary: PostgresNode) -> None:
    """Set what may be set for other programs of the database: their logs are shorter then."""
    with psycopg.connect(primary.dsn(), autocommit=True) as connection:
        quiet = f"ALTER DATABASE {connection.info.dbname} SET client_min_messages = error"
        connection.execute(quiet.encode())


def counted(pair: PrimaryAndStandby, query: LiteralString) -> int:
    with psycopg.connect(pair.primary.dsn(), autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


async def lose_standby(pair: PrimaryAndStandby) -> None:
    """Kill the standby; its receiver, a process of its own, may confirm for a moment longer."""
    pair.standby.server.kill()
    await asyncio.to_thread(wait_for, lambda: not counted(pair, REPLICAS))


def end_waits(pair: PrimaryAndStandby, function: str = "pg_cancel_backend") -> None:
    """End every wait for the standby: those commits are valid though the standby may lack them."""
    with psycopg.connect(pair.primary.dsn(), autocommit=True) as connection:
        connection.execute(END_WAITS.format(function=function).encode())


async def unanswered_until(
    pair: PrimaryAndStandby, ask: Ask, then: Callable[[], object]
) -> httpx2.Response:
    """Ask, check that the answer waits for the standby, call ``then``, and return the answer."""
    asked = asyncio.ensure_future(ask())
    await asyncio.to_thread(wait_for, lambda: counted(pair, WAITS))
    assert not asked.done()
    await asyncio.to_thread(then)
    return await asyncio.wait_for(asked, 60)


def assert_unknown(answer: httpx2.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["type"].endswith("database-unavailable")
    assert int(answer.headers["retry-after"]) > 0


async def registered(service: Service, pair: PrimaryAndStandby) -> None:
    """Register the group; a failed test may have left no standby to wait for."""
    if pair.standby.server.pid is None:
        await asyncio.to_thread(pair.standby.start)
    answer = await service.put_group(GROUP)
    assert answer.status_code in (200, 201), answer.text


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
async def test_f9_a_given_up_wait_is_unknown_and_so_is_its_retry_until_the_standby_is_back(
    pair: PrimaryAndStandby, function: str
) -> None:
    async with running(settings_for(pair.primary.dsn())) as service:
        await registered(service, pair)
        half = await service.prepared_id()
        ends: Ask = partial(service.end, half, "COMMIT")
        prepares: Ask = partial(service.prepare, transaction_id=function)
        await lose_standby(pair)
        for ask in (ends, ends, prepares, prepares):
            assert_unknown(await unanswered_until(pair, ask, partial(end_waits, pair, function)))
        ended = await unanswered_until(pair, ends, pair.standby.start)
        prepared = await prepares()
    assert (ended.status_code, ended.json()["state"]) == (200, "COMMITTED")
    assert prepared.is_success, prepared.text


async def test_reads_are_answered_however_many_prepares_wait_for_the_standby(
    pair: PrimaryAndStandby, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "ANSWER_SECONDS", 0.5)
    async with running(settings_for(pair.primary.dsn(), database_pool_max=4)) as service:
        await registered(service, pair)
        await service.prepared_id()
        await lose_standby(pair)
        for _ in range(8):
            assert_unknown(await service.prepare())
        read = await service.client.get(HALVES)
        assert read.status_code == 200
        await asyncio.to_thread(pair.standby.start)
        async with asyncio.timeout(60):
            while (prepared := await service.prepare()).status_code == 503:
                assert_unknown(prepared)
    assert prepared.status_code == 201, prepared.text
