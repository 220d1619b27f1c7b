"""The overview: what waits, how it goes now, and how it went in the last hour and day."""

from __future__ import annotations

import re

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import browsing, key_text, logged_in
from tests.integration.api.console.fixtures_overtaken_time import CHECKED, TRIPPED
from tests.integration.api.fixtures_keys import token
from tests.integration.api.fixtures_rows import select

pytestmark = pytest.mark.postgres


async def test_the_overview_draws_the_last_hour_and_says_it_in_words(
    database_url: str, pool: Pool
) -> None:
    reader = logged_in(database_url, pool, Scope.REPORTS_READ)
    async with reader as (service, browser):
        for decision in ("COMMIT", "COMMIT", "ROLLBACK"):
            await service.end(await service.prepared_id(), decision)
        page = await browser.get("/ui/overview")
        assert "GET /v1/rates" in page.text
        for words in (
            r"Prepared : 3 in the last hour, 3 in the busiest minute \( \d\d:\d\d UTC \), 3 in",
            r"Committed : 2 in the last hour",
            r"Published to Kafka : none in the last hour",
            r"Checks made : none in the last hour",
            r"Prepared 0 0 0 0 0 3 Committed 0 0 0 0 0 2",
        ):
            assert re.search(words, page.text), words
        charts = re.findall(r'<svg class="rate".*?</svg>', page.html, re.DOTALL)
        assert [each.count('<rect class="bar"') for each in charts] == [1, 1, 0, 0]
        names = set(re.findall(r'aria-labelledby="([^"]+)"', page.html))
        assert names == set(re.findall(r'<figcaption id="([^"]+)"', page.html))


async def test_the_overview_shows_messages_and_the_oldest_of_each_group(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        for _ in range(3):
            committed = await service.prepared_id()
        await service.end(committed, "COMMIT")
        page = await browser.get("/ui/overview")
        assert re.search(r"PREPARED PARKED COMMITTED Oldest billing 2 0 1 \d+ s ", page.text)
        assert '<a href="/ui/groups/billing">billing</a>' in page.html


async def test_the_last_hour_of_all_groups_is_not_shown_to_a_bound_key(
    database_url: str, pool: Pool
) -> None:
    bound = logged_in(database_url, pool, Scope.REPORTS_READ, groups=("billing",))
    async with bound as (service, browser):
        await service.prepared_id()
        page = await browser.get("/ui/overview")
        assert "A key of all groups with the scope reports:read sees the last hour." in page.text
        assert "<figure" not in page.html


async def test_the_overview_names_breakers_latency_and_outcomes_of_checks(
    database_url: str, pool: Pool
) -> None:
    scopes = (Scope.MESSAGES_READ, Scope.GROUPS_READ, Scope.REPORTS_READ)
    async with logged_in(database_url, pool, *scopes) as (service, browser):
        await service.prepared_id()
        await select(pool, CHECKED, "timeout", None)
        await service.prepared_id()
        await select(pool, CHECKED, "commit", 200)
        await select(pool, TRIPPED, 60, "billing")
        page = await browser.get("/ui/overview")
        assert "The breaker of billing is open." in page.text
        assert "Every breaker is closed." not in page.text
        assert "Outcome Last five minutes Last 24 hours commit 1 1 timeout 1 1" in page.text
        assert "Latency, from the decision to Kafka" in page.text
        assert "GET /v1/producer-groups?breaker=not-closed" in page.text


async def test_a_calm_overview_says_so_and_a_key_without_scopes_reads_which_it_lacks(
    database_url: str, pool: Pool
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        calm = (await browser.get("/ui/overview")).text
        assert "Every breaker is closed." in calm
        assert "No check was made in the last 24 hours." in calm
        assert "No new message is in Kafka yet." in calm
        async with browsing(service) as other:
            await other.log_in(key_text(await token(pool, Scope.MESSAGES_WRITE)))
            page = (await other.get("/ui/overview")).text
        assert "Last reconciliation No run yet: outbox reconcile run ." in calm
        for scope in (Scope.MESSAGES_READ, Scope.GROUPS_READ, Scope.REPORTS_READ):
            assert f"Your key needs the scope {scope}." in page
        assert page.count(f"the scope {Scope.REPORTS_READ} sees the last hour") == 2
