"""The first page: what needs a person and the way on, then exact figures of the last hour."""

from __future__ import annotations

import asyncio
import re
from typing import Final

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.access import Scope
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.postgres.operators.activity import PostgresActivity
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Page, logged_in
from tests.integration.api.console.fixtures_overtaken_time import BEAT, TRIPPED
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import HALT, PARK, select
from tests.integration.api.fixtures_service import GROUPS, HALVES, Service, prepare_body
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

BATCHES: Final = 12
ITEMS: Final = 100
PREPARED: Final = (
    "SELECT count(*)::int FROM outbox.half_message JOIN outbox.producer_group g"
    " ON g.id = producer_group_id WHERE g.name = 'runaway'"
)


async def test_a_minute_full_of_batches_is_counted_exactly_and_its_group_comes_first(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        await service.put_group("runaway")
        for decision in ("COMMIT", "COMMIT", "ROLLBACK"):
            await service.end(await service.prepared_id(), decision)
        await service.prepared_id()
        items = {"items": [prepare_body(producer_group="runaway")] * ITEMS}
        for _ in range(BATCHES):
            assert (await service.client.post(f"{HALVES}/batch", json=items)).status_code == 207
        assert await select(pool, PREPARED) == [(BATCHES * ITEMS,)]
        await until_written(service, prepared=BATCHES * ITEMS + 4, committed=2)
        page = await browser.get("/ui/")
        assert re.search(r"prepared 1 204 \d \d\d\d ", page.text)
        assert re.search(r"committed 2 \d \d published 0 0 0 ", page.text)
        assert re.search(r"Group Busiest [^\d]+ runaway [\d ]+ 1 200 0 0 ", page.text)
        assert re.search(r"Keys Key Busiest [A-Za-z ]+ [0-9a-f]{16} [\d ]+ 1 204 ", page.text)
        busiest = await select(pool, "SELECT max(prepared)::int FROM outbox.activity")
        rates = (await service.client.get("/v1/rates")).json()
        assert rates["groups"][0]["busiest_minute"] == busiest[0][0]
        assert '<a href="/ui/groups/runaway">runaway</a>' in page.html
        minutes = re.findall(r"<title>(\d\d:\d\d) UTC, ([\d\u202f]+) prepared", page.html)
        assert sum(int(each.replace("\u202f", "")) for _, each in minutes) == BATCHES * ITEMS + 4
        assert (len(minutes), "<polyline" in page.html) == (60, True)


async def until_written(service: Service, **expected: int) -> None:
    """Wait until the process has written what it did, which it does every few seconds."""
    async with asyncio.timeout(60):
        found: dict[str, int] = {}
        while not expected.items() <= found.items():
            answer = (await service.client.get("/v1/rates")).json()
            found = {each["name"]: sum(each["counts"]) for each in answer["data"]}


RELAYED: Final = (
    "INSERT INTO outbox.progress (name, position, position_n)"
    " SELECT 'relay:' || shard, xid, 8 FROM outbox.commit_log"
)
"""Lets the relay have passed every commit: a record is held only behind its position."""
LATE: Final = "UPDATE outbox.reconciliation_run SET finished_at = now() - interval '27 hours'"
NEEDS: Final = {
    "Not ready": "/ui/system",
    "kafka": "/ui/system",
    "halted shards": "/ui/publishing",
    "invoices.issued": "/ui/publishing",
    "billing": "/ui/parked",
    "broken": "/ui/groups/broken",
    "paused": "/ui/groups/paused",
}


def needs(page: Page) -> dict[str, str]:
    """Return what needs a person, each with the page of its next action."""
    item = r'<li class="incident.*?<strong>(.*?)</strong>.*?href="([^"]+)">'
    return dict(re.findall(item, page.html, re.DOTALL))


async def test_what_needs_a_person_is_on_the_first_page_with_the_way_on(
    database_url: str, pool: Pool
) -> None:
    PostgresRunStore(database_url).save(make_run("one", "f1", sentence="1 message is lost"))
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        for group in ("paused", "broken"):
            await service.put_group(group)
        await service.prepared_id()
        await select(pool, PARK)
        held = await service.prepared_id()
        await service.end(held, "COMMIT")
        await hold(pool, held)
        await select(pool, RELAYED)
        await select(pool, LATE)
        await select(pool, HALT)
        await select(pool, TRIPPED, 60, "broken")
        why = {"reason": "it moves", "operator": "Grace"}
        assert (await service.client.post(f"{GROUPS}/paused/pause", json=why)).status_code == 200
        async with asyncio.timeout(60):  # what was found at the login is remembered for seconds
            while not NEEDS.items() <= needs(page := await browser.get("/ui/")).items():
                pass
    assert "outbox shard resolve 3 --scan --reason TEXT" in page.text
    assert re.search(r"the breaker is open : next trial \d{4}-", page.text)
    assert re.search(r"checks are paused since \d{4}-\S+ \S+ UTC by Grace: it moves", page.text)
    assert "findings, 1 message is lost" in page.text
    assert "the last one finished" in page.text


async def test_an_installation_in_which_all_is_well_says_so(
    database_url: str, pool: Pool, kafka_broker: EmbeddedKafka
) -> None:
    servers = kafka_broker.bootstrap_servers
    ensure_progress_topic(servers)
    await select(pool, BEAT)
    scopes = (Scope.MESSAGES_READ, Scope.GROUPS_READ)
    there = logged_in(database_url, pool, *scopes, kafka_bootstrap_servers=servers)
    async with there as (_, browser):
        page = await browser.get("/ui/")
    assert "Nothing needs you, as far as your key sees." in page.text, page.text


async def test_the_first_page_shows_the_outcomes_of_checks(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.REPORTS_READ) as (_, browser):
        assert "No check was made in the last 24 hours." in (await browser.get("/ui/")).text
        await PostgresActivity(pool).add(
            {("billing", ""): {"check_timeout": 1, "check_unknown": 2}}
        )
        page = await browser.get("/ui/")
        assert "Last five minutes Last 24 hours unknown 2 2 timeout 1 1" in page.text
        assert '<span class="warn">unknown</span>' in page.html
