"""The overview: what waits, how it goes now, and how it went in the last hour and day."""

from __future__ import annotations

import asyncio
import re

import pytest

from outbox.access import Scope
from outbox.postgres.operators.activity import PostgresActivity
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import logged_in
from tests.integration.api.console.fixtures_overtaken_time import TRIPPED
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres


async def test_the_overview_shows_what_waits_and_the_last_hour_of_each_group(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        for decision in ("COMMIT", "COMMIT", "ROLLBACK"):
            await service.end(await service.prepared_id(), decision)
        await service.prepared_id()
        await until_written(service, prepared=4, committed=2)
        page = await browser.get("/ui/overview")
        assert re.search(r"prepared 4 \d \d committed 2 \d \d published 0 0 0 ", page.text)
        assert re.search(r"Committed Published billing 1 0 2 4 2 0 ", page.text)
        assert '<a href="/ui/groups/billing">billing</a>' in page.html


async def until_written(service: Service, **expected: int) -> None:
    """Wait until the process has written what it did, which it does every few seconds."""
    async with asyncio.timeout(60):
        found: dict[str, int] = {}
        while not expected.items() <= found.items():
            answer = (await service.client.get("/v1/rates")).json()
            found = {each["name"]: sum(each["counts"]) for each in answer["data"]}


async def test_the_overview_names_breakers_and_outcomes_of_checks(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.GROUPS_READ, Scope.REPORTS_READ)
    async with logged_in(database_url, pool, *scopes) as (_, browser):
        calm = (await browser.get("/ui/overview")).text
        assert "Every breaker is closed." in calm
        assert "No check was made in the last 24 hours." in calm
        await PostgresActivity(pool).add({"billing": {"check_timeout": 1, "check_commit": 2}})
        await select(pool, TRIPPED, 60, "billing")
        page = await browser.get("/ui/overview")
        assert "The breaker of billing is open." in page.text
        assert "Outcome Last five minutes Last 24 hours commit 2 2 timeout 1 1" in page.text


async def test_the_last_hour_of_all_groups_is_not_shown_to_a_bound_key(
    database_url: str, pool: Pool
) -> None:
    bound = logged_in(database_url, pool, Scope.REPORTS_READ, groups=("billing",))
    async with bound as (_, browser):
        page = await browser.get("/ui/overview")
        assert "A key of all groups with the scope reports:read sees the last hour." in page.text
        assert 'id="rates"' not in page.html
